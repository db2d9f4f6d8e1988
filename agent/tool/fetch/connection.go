package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"syscall"
	"time"

	"nudge/agent/tool/queue"
)

// dialTime is how long one address of a host may take to answer before the next is tried.
const dialTime = 10 * time.Second

// fetcher is the tool's connection to the world. It keeps nothing from one call to the next.
type fetcher struct {
	Config
	client *http.Client
	places *queue.Places
}

func newFetcher(c Config) *fetcher {
	if c.Lookup == nil {
		c.Lookup = func(ctx context.Context, name string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", name+".") // the dot keeps the machine's own endings away
		}
	}
	if c.Dial == nil {
		c.Dial = dial
	}
	f := &fetcher{Config: c, places: queue.NewPlaces(mostAtOnce, mostOwn)}
	f.client = &http.Client{
		Transport: &http.Transport{
			Proxy:                  nil, // that of the environment may reach what this must not
			DialContext:            f.connect,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:    dialTime,
			DisableKeepAlives:      true, // each request looks its host up and checks it
			MaxResponseHeaderBytes: maxHeader,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return f
}

// connect looks a host up once, checks all that is found, and dials what was checked.
func (f *fetcher) connect(ctx context.Context, _, hostPort string) (net.Conn, error) {
	host, portText, err := net.SplitHostPort(hostPort)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, err
	}
	addresses, err := f.find(ctx, host)
	if err != nil {
		return nil, err
	}
	for _, ip := range addresses {
		var conn net.Conn
		if conn, err = f.Dial(ctx, netip.AddrPortFrom(ip, uint16(port))); err == nil || ctx.Err() != nil {
			return conn, err
		}
	}
	return nil, errUnreachable
}

var (
	errUnreachable = errors.New("its server cannot be reached")
	errUnknownHost = errors.New("its host cannot be found")
)

// find gives the addresses of a host: all of them public, or none.
func (f *fetcher) find(ctx context.Context, host string) ([]netip.Addr, error) {
	addresses := []netip.Addr{}
	if ip, err := netip.ParseAddr(host); err == nil {
		addresses = append(addresses, ip)
	} else if addresses, err = f.Lookup(ctx, host); err != nil || len(addresses) == 0 {
		return nil, errUnknownHost
	}
	for i, ip := range addresses {
		addresses[i] = ip.Unmap()
	}
	if slices.ContainsFunc(addresses, func(ip netip.Addr) bool { return !public(ip) || own(ip) }) {
		return nil, errNotPublic
	}
	return addresses, nil
}

// dial connects to an address, which is checked once more where nothing can come between.
func dial(ctx context.Context, address netip.AddrPort) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: dialTime, Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil || !public(at.Addr()) {
			return errNotPublic
		}
		return nil
	}}
	return dialer.DialContext(ctx, "tcp", address.String())
}

// get follows redirects to a page. Each of them is a new address, checked like the first, and told nothing of those before.
func (f *fetcher) get(ctx context.Context, to target) (page, error) {
	asked := to
	for range redirects + 1 {
		answer, err := f.ask(ctx, to)
		if err != nil {
			return page{}, reason(err)
		}
		next := answer.Header.Get("Location")
		if !redirecting(answer.StatusCode) || next == "" {
			defer answer.Body.Close()
			return readPage(asked, to, answer)
		}
		answer.Body.Close()
		if to, err = f.follow(to, next); err != nil {
			return page{}, fmt.Errorf("it leads on to another address, but %w", err)
		}
	}
	return page{}, fmt.Errorf("it leads on to other addresses more than %d times", redirects)
}

// follow reads the address in a redirect.
func (f *fetcher) follow(from target, location string) (target, error) {
	next, err := from.url.Parse(location)
	if err != nil {
		return target{}, errors.New("that is no address")
	}
	return f.check(next.String())
}

func (f *fetcher) ask(ctx context.Context, to target) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, to.url.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", "Mozilla/5.0 (compatible; Nudge)")
	request.Header.Set("Accept", "text/html,application/xhtml+xml,text/plain;q=0.9,application/json;q=0.9,*/*;q=0.5")
	return f.client.Do(request)
}

func redirecting(status int) bool {
	return slices.Contains([]int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect}, status)
}

// reason says why a page did not come, without addresses and ports of the machine's own network.
func reason(err error) error {
	for _, known := range []error{errNotPublic, errUnknownHost, errUnreachable} {
		if errors.Is(err, known) {
			return known
		}
	}
	var certificate *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	switch {
	case errors.As(err, &certificate), errors.As(err, &authority), errors.As(err, &name):
		return errors.New("its server shows no certificate that can be trusted")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return errors.New("its server ended the connection without an answer")
	}
	return errors.New("its server gave no answer that can be read")
}
