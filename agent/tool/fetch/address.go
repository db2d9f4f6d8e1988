package fetch

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// longestAddress is in bytes; servers take no more either.
const longestAddress = 4096

// ports are those on which pages are served. Others need the host to be listed with its port.
var ports = []string{"80", "443", "8080", "8443"}

// target is an address that was checked as far as that needs no network.
type target struct {
	url *url.URL // the host in small ASCII letters, without a dot at the end; no user, no fragment
}

// String is the address for people and models.
func (t target) String() string { return t.url.String() }

// check reads an address as the model, or a redirect, wrote it.
func (f *fetcher) check(address string) (target, error) {
	to, err := parse(address)
	switch {
	case err != nil:
		return target{}, err
	case len(f.Hosts) > 0 && !listedIn(f.Hosts, to.url):
		return target{}, fmt.Errorf("%q is none of the hosts that may be read from: %s", to.url.Host, listed(f.Hosts))
	case !slices.Contains(ports, port(to.url)) && !listedIn(f.Hosts, to.url):
		return target{}, fmt.Errorf("pages are not read from port %s", port(to.url))
	}
	return to, nil
}

// parse reads an address and refuses whatever two programs could read in two ways.
func parse(address string) (target, error) {
	address = strings.TrimSpace(address)
	switch {
	case len(address) > longestAddress:
		return target{}, errors.New("the address is too long")
	case !utf8.ValidString(address):
		return target{}, errors.New("the address is no text")
	case strings.ContainsFunc(address, func(r rune) bool {
		return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.IsSpace(r) || r == '\\'
	}):
		return target{}, errors.New("the address has spaces, backslashes or characters that cannot be seen")
	}
	parsed, err := url.Parse(address)
	switch {
	case err != nil:
		return target{}, errors.New("that is no address; it must look like https://example.com/page")
	case parsed.Scheme != "http" && parsed.Scheme != "https":
		return target{}, errors.New("only addresses that begin with http:// or https:// can be fetched")
	case parsed.Opaque != "":
		return target{}, errors.New("that is no address; it must look like https://example.com/page")
	case parsed.User != nil:
		return target{}, errors.New("an address with a user or a password in it is not fetched")
	}
	host, err := hostName(parsed.Hostname())
	if err != nil {
		return target{}, err
	}
	if err := checkPort(parsed); err != nil {
		return target{}, err
	}
	bare := *parsed
	bare.Host = host
	if strings.Contains(host, ":") {
		bare.Host = "[" + host + "]"
	}
	if p := parsed.Port(); p != "" {
		bare.Host += ":" + p
	}
	bare.Fragment, bare.RawFragment = "", ""
	if len(bare.String()) > longestAddress { // what was escaped is longer
		return target{}, errors.New("the address is too long")
	}
	return target{&bare}, nil
}

func checkPort(u *url.URL) error {
	if u.Port() == "" && !strings.HasSuffix(u.Host, ":") {
		return nil
	}
	if n, err := strconv.ParseUint(u.Port(), 10, 16); err != nil || n == 0 || strconv.FormatUint(n, 10) != u.Port() {
		return errors.New("the port in the address is not a number from 1 to 65535")
	}
	return nil
}

// port is the one that an address is about.
func port(u *url.URL) string {
	switch p := u.Port(); {
	case p != "":
		return p
	case u.Scheme == "http":
		return "80"
	}
	return "443"
}

var errNotPublic = errors.New("only hosts on the public internet can be fetched")

// hostName gives a host in its one spelling: an IP address, or a name in small ASCII letters.
func hostName(host string) (string, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		if !public(ip) {
			return "", errNotPublic
		}
		return ip.String(), nil
	}
	name, err := idna.Lookup.ToASCII(host)
	if err == nil { // what it makes must mean the same to who reads it next
		var again string
		if again, err = idna.Lookup.ToASCII(name); again != name {
			err = errors.New("it has two spellings")
		}
	}
	if err != nil {
		return "", errors.New("the address has no host that could exist")
	}
	// IDNA turns letters such as ① and full stops such as 。 into plain ones, so what is a number shows only now.
	name = strings.TrimSuffix(name, ".")
	labels := strings.Split(name, ".")
	last := labels[len(labels)-1]
	switch ip, err := netip.ParseAddr(name); {
	case err == nil && ip.Is4() && public(ip):
		return ip.String(), nil
	case err == nil, numeric(last):
		return "", errNotPublic // also 127.1, 0x7f.1 and 2130706433, which some programs take for addresses
	case slices.Contains(labels, ""), len(labels) == 1, slices.Contains(privateEndings, last), strings.HasSuffix(name, ".home.arpa"):
		return "", errNotPublic // those are names of the machine or of a network of its own
	}
	return name, nil
}

// privateEndings are the last parts of names that no public server has.
var privateEndings = []string{"localhost", "local", "localdomain", "internal", "intranet", "lan", "home", "corp", "private", "onion"}

// numeric reports whether the last part of a host makes programs read the whole as an IPv4 address.
func numeric(label string) bool {
	digits, hexadecimal := strings.CutPrefix(label, "0x")
	return !strings.ContainsFunc(digits, func(r rune) bool {
		return (r < '0' || r > '9') && (!hexadecimal || (r < 'a' || r > 'f'))
	})
}

// CheckHost says what is wrong with a host of a [Config]: it is a public name, or "*." and one, which stands for all names
// that end so, or an IP address; behind it may stand a port.
func CheckHost(host string) error {
	name := strings.TrimPrefix(host, "*.")
	to, err := parse("http://" + name)
	switch {
	case err != nil:
		return fmt.Errorf("the host %q: %w", host, err)
	case to.url.Host != name:
		return fmt.Errorf("the host %q: write a host alone, in small ASCII letters, such as %q", host, to.url.Host)
	}
	if _, err := netip.ParseAddr(to.url.Hostname()); err == nil && name != host {
		return fmt.Errorf("the host %q: there are no names below an IP address", host)
	}
	return nil
}

// listedIn reports whether an address leads to one of some hosts. One without a port is meant with those of pages.
func listedIn(hosts []string, u *url.URL) bool {
	return slices.ContainsFunc(hosts, func(host string) bool {
		name, below := strings.CutPrefix(host, "*.")
		listed, err := url.Parse("http://" + name)
		if err != nil {
			return false
		}
		if p := listed.Port(); p != port(u) && (p != "" || !slices.Contains(ports, port(u))) {
			return false
		}
		return !below && u.Hostname() == listed.Hostname() || below && strings.HasSuffix(u.Hostname(), "."+listed.Hostname())
	})
}

func listed(hosts []string) string {
	const most = 10
	if len(hosts) > most {
		return strings.Join(hosts[:most], ", ") + fmt.Sprintf(" and %d more", len(hosts)-most)
	}
	return strings.Join(hosts, ", ")
}
