package fetch

import (
	"net"
	"net/netip"
	"slices"
)

func prefixes(list ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, one := range list {
		all = append(all, netip.MustParsePrefix(one))
	}
	return all
}

// What IANA's registries of special-purpose addresses list as not globally reachable, and whatever wraps another address
// and is not unwrapped here. Of IPv6 only 2000::/3 is given out at all.
var (
	special4 = prefixes(
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
		"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
		"168.63.129.16/32", // Azure's own services, as its machines see them
	)
	global6  = netip.MustParsePrefix("2000::/3")
	special6 = prefixes("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
	nat64    = netip.MustParsePrefix("64:ff9b::/96")
)

// public reports whether an address is one of the public internet, whatever it is wrapped in.
func public(ip netip.Addr) bool {
	if ip.Zone() != "" {
		return false
	}
	ip = ip.Unmap()
	if nat64.Contains(ip) { // what networks without IPv4 see of those that have it
		bytes := ip.As16()
		ip = netip.AddrFrom4([4]byte(bytes[12:]))
	}
	in := func(prefix netip.Prefix) bool { return prefix.Contains(ip) }
	if ip.Is4() {
		return !slices.ContainsFunc(special4, in)
	}
	return global6.Contains(ip) && !slices.ContainsFunc(special6, in) && !isatap(ip)
}

// isatap reports whether the last half of an address wraps an IPv4 address for the tunnel that a machine may end.
func isatap(ip netip.Addr) bool {
	bytes := ip.As16()
	return bytes[8]&^2 == 0 && bytes[9] == 0 && bytes[10] == 0x5e && bytes[11] == 0xfe
}

// own reports whether an address is one of this machine, whose doors may be open for itself alone. Where the system does
// not tell which those are, any could be.
func own(ip netip.Addr) bool {
	addresses, err := net.InterfaceAddrs()
	return err != nil || slices.ContainsFunc(addresses, func(a net.Addr) bool {
		prefix, err := netip.ParsePrefix(a.String())
		return err == nil && prefix.Addr().Unmap() == ip.Unmap()
	})
}
