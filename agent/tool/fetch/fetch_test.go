package fetch

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nudge/agent"
)

const good = "93.184.216.34"

func hello(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	_, _ = io.WriteString(w, "hello from the page")
}

// refused are addresses that are never dialled.
var refused = []string{
	"http://169.254.169.254/latest/meta-data/", "http://[::ffff:169.254.169.254]/", "http://[::ffff:a9fe:a9fe]/",
	"http://[64:ff9b::a9fe:a9fe]/", "http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/", "http://[2002:a9fe:a9fe::]/",
	"http://[::127.0.0.1]/", "http://100.64.0.1/", "http://198.18.0.1/", "http://192.0.0.192/", "http://0.0.0.0:8080/", "http://[::]/",
	"http://[fd00:ec2::254]/", "http://[fe80::1%25eth0]/", "http://127.1/", "http://2130706433/", "http://0x7f.0.0.1/",
	"http://0177.0.0.1/", "http://localhost./", "http://example.com@127.0.0.1/", "http://255.255.255.255/", "http://224.0.0.1/",
	"file:///etc/passwd", "gopher://127.0.0.1:25/", "ftp://example.com/", "http://unix%2Fsocket/", "http://①②⑦.⓪.⓪.①/",
	"http://127.0.0.1.nip.test/", "http://mixed.test/",
	// More of the kind.
	"http://localhost/", "http://LOCALHOST/", "http://a.localhost/", "http://127.0.0.1/", "http://127.0.0.1./", "http://127.0.0.1../", "http://127.0.0.1:80/",
	"http://10.0.0.1/", "http://172.16.0.1/", "http://172.31.255.255/", "http://192.168.1.1/", "http://192.0.2.1/", "http://192.88.99.1/",
	"http://203.0.113.7/", "http://198.51.100.1/", "http://240.0.0.1/", "http://168.63.129.16/", "http://100.100.100.200/",
	"http://[::1]/", "http://[::1%25lo]/", "http://[fe80::1]/", "http://[fc00::1]/", "http://[ff02::1]/", "http://[2001:db8::1]/", "http://[2001::1]/",
	"http://[3fff::1]/", "http://[64:ff9b:1::1]/", "http://[100::1]/", "http://[2606:4700::5efe:7f00:1]/", "http://[2606:4700::200:5efe:a00:1]/",
	"http://[0:0:0:0:0:ffff:127.0.0.1]/", "http://[2606:2800:220:1:248:1893:25c8:1946%25eth0]/",
	"http://0x7f000001/", "http://017700000001/", "http://0/", "http://1/", "http://127.0.1/", "http://0x7f.1/", "http://1.1.1.1.1/", "http://0x/", "http://example.0x7f/",
	"http://127。0。0。1/", "http://１２７.0.0.1/", "http://loca\u00adlhost/", "http://ｌｏｃａｌｈｏｓｔ/", "http://localhost%00.good.test/", "http://good.test\u200b/",
	"http://router/", "http://printer.local/", "http://metadata.google.internal/", "http://db.internal/", "http://nas.home.arpa/", "http://x.onion/",
	"http://good.test:22/", "http://good.test:6379/", "http://good.test:0/", "http://good.test:65536/", "http://good.test:-1/", "http://good.test:80a/", "http://good.test:/", "http://good.test:080/",
	"http://user@good.test/", "http://user:word@good.test/", "http://@good.test/", "http://good.test\\@127.0.0.1/", "http://good.test /", "http://good.test/\r\nHost: x",
	"javascript:alert(1)", "data:text/html,hi", "http:good.test", "//good.test/", "good.test", "", "http://", "http:///path", "http://./", "http://..test/", "http://%/",
	"http://-/", "http://a..test/", "http://" + strings.Repeat("a", 64) + ".test/", "http://good.test/" + strings.Repeat("a", longestAddress),
	"unix:///var/run/docker.sock", "HTTP+UNIX://x/", "ws://good.test/", "http://rebound.test/", "http://own.test/", "http://nowhere.test/",
}

func TestWhatIsNotPublicIsNeverDialled(t *testing.T) {
	for _, address := range refused {
		w := newWorld(t, hello)
		w.names = map[string][]string{
			"good.test": {good}, "127.0.0.1.nip.test": {"127.0.0.1"}, "mixed.test": {`["` + good + `","10.0.0.5"]`},
			"rebound.test": {"::ffff:10.0.0.1"}, "own.test": {ownAddress(t)},
			"localhost": {"127.0.0.1"}, "example.com": {good}, "a.localhost": {good}, "db.internal": {good},
		}
		result, err := w.fetch(address)
		if err == nil || len(w.dials) > 0 {
			t.Errorf("%q gave %q, %v; dialled %v", address, result.Text, err, w.dials)
		}
		if err != nil && (strings.Contains(err.Error(), "port is") || strings.ContainsAny(err.Error(), "\n\r")) {
			t.Errorf("%q says %q", address, err)
		}
	}
}

// ownAddress is one of this machine, or of its loopback.
func ownAddress(t *testing.T) string {
	addresses, err := net.InterfaceAddrs()
	if err != nil || len(addresses) == 0 {
		t.Skip("this machine has no address")
	}
	return netip.MustParsePrefix(addresses[len(addresses)-1].String()).Addr().String()
}

func TestWhatIsPublicIsRead(t *testing.T) {
	for address, dialled := range map[string]string{
		"http://good.test/":                             good + ":80",
		" https-less.test":                              "",
		"HTTP://GOOD.TEST./a?b=c#d":                     good + ":80",
		"http://good.test:8080/":                        good + ":8080",
		"http://bücher.test/":                           good + ":80",
		"http://93.184.216.34/":                         good + ":80",
		"http://[2606:2800:220:1:248:1893:25c8:1946]/":  "[2606:2800:220:1:248:1893:25c8:1946]:80",
		"http://[::ffff:93.184.216.34]/":                good + ":80",
		"http://[64:ff9b::5db8:d822]/":                  "[64:ff9b::5db8:d822]:80",
		"http://good.test/a/../b%2F..%2Fc?u=http://x.y": good + ":80",
	} {
		if dialled == "" {
			continue
		}
		w := newWorld(t, hello)
		w.names = map[string][]string{"good.test": {good}, "xn--bcher-kva.test": {good}}
		result, err := w.fetch(address)
		if err != nil || !strings.Contains(result.Text, "hello from the page") || !slices.Equal(w.dials, []string{dialled}) {
			t.Errorf("%q gave %q, %v; dialled %v", address, result.Text, err, w.dials)
		}
	}
}

func TestRedirectsAreCheckedLikeAddresses(t *testing.T) {
	for _, location := range []string{
		"http://127.0.0.1:9/", "//169.254.169.254/", "file:///etc/passwd", "http://inside.test/", "http://user:word@good.test/", "http://localhost/",
		"gopher://good.test/", "http://good.test:22/", "http://[::1]/", "\x01", "http://%zz/",
	} {
		w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header()["Location"] = []string{location}
			w.WriteHeader(http.StatusFound)
		})
		w.names = map[string][]string{"good.test": {good}, "inside.test": {"10.0.0.1"}}
		result, err := w.fetch("http://good.test/")
		if err == nil || !slices.Equal(w.dials, []string{good + ":80"}) {
			t.Errorf("to %q: %q, %v; dialled %v", location, result.Text, err, w.dials)
		}
	}
}

func TestRedirectsEnd(t *testing.T) {
	for _, c := range []struct{ count, dials int }{{5, 6}, {6, 6}, {1000, 6}} {
		n := 0
		w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
			if n++; n > c.count {
				hello(w, r)
				return
			}
			http.Redirect(w, r, fmt.Sprintf("/%d", n), http.StatusMovedPermanently)
		})
		w.names = map[string][]string{"good.test": {good}}
		result, err := w.fetch("http://good.test/")
		if (err == nil) != (c.count <= redirects) || len(w.dials) != c.dials {
			t.Errorf("%d redirects gave %q, %v after %d dials", c.count, result.Text, err, len(w.dials))
		}
	}
}

// A second answer for the same name, as somebody gives it who owns the name, is checked as well.
func TestRebinding(t *testing.T) {
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/again", http.StatusFound) })
	w.names = map[string][]string{"rebind.test": {good, "127.0.0.1"}}
	_, err := w.fetch("http://rebind.test/")
	if err == nil || !slices.Equal(w.dials, []string{good + ":80"}) {
		t.Errorf("got %v; dialled %v", err, w.dials)
	}
}

// A name is looked up once for each dial, and what was checked is dialled.
func TestANameIsLookedUpOnce(t *testing.T) {
	w := newWorld(t, hello)
	w.names = map[string][]string{"rebind.test": {good, "127.0.0.1"}}
	if _, err := w.fetch("http://rebind.test/"); err != nil || !slices.Equal(w.dials, []string{good + ":80"}) {
		t.Errorf("got %v; dialled %v", err, w.dials)
	}
}

// The system's dialer is the last to look.
func TestTheDialerChecksToo(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := dial(t.Context(), netip.MustParseAddrPort(listener.Addr().String()))
	if err == nil {
		conn.Close()
		t.Fatal("the loopback was dialled")
	}
	f := newFetcher(Config{})
	if _, err := f.connect(t.Context(), "tcp", listener.Addr().String()); err == nil {
		t.Error("the loopback was dialled")
	}
}

func TestNothingOfThisMachineGoesAlong(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:3128")
	// Go reads the variable once in a process, so that this test alone could come too late for it.
	if f := newFetcher(Config{}); f.client.Transport.(*http.Transport).Proxy != nil || f.client.Jar != nil {
		t.Error("the client has a proxy or cookies")
	}
	var headers []http.Header
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		headers = append(headers, r.Header.Clone())
		if r.Host == "good.test" {
			http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
			w.Header().Set("WWW-Authenticate", "Basic")
			http.Redirect(w, r, "http://other.test/", http.StatusFound)
			return
		}
		hello(w, r)
	})
	w.names = map[string][]string{"good.test": {good}, "other.test": {"93.184.216.35"}}
	result, err := w.fetch("http://good.test/secret-path?token=1")
	if err != nil || !slices.Equal(w.dials, []string{good + ":80", "93.184.216.35:80"}) {
		t.Fatalf("got %v; dialled %v", err, w.dials)
	}
	for _, header := range headers {
		for name := range header {
			if !slices.Contains([]string{"User-Agent", "Accept", "Accept-Encoding", "Connection"}, name) {
				t.Errorf("%s was sent: %q", name, header[name])
			}
		}
	}
	if !strings.Contains(result.Text, "led on to http://other.test/") {
		t.Errorf("the page says %q", result.Text)
	}
}

func TestLongBodiesAreCut(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"endless": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, strings.Repeat("word ", 10000)); err != nil {
					return
				}
			}
		},
		"a bomb": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			w.Header().Set("Content-Encoding", "gzip")
			packed := gzip.NewWriter(w)
			for r.Context().Err() == nil {
				if _, err := packed.Write(bytes.Repeat([]byte("a "), 1<<16)); err != nil {
					return
				}
			}
		},
	} {
		w := newWorld(t, answer)
		w.names = map[string][]string{"good.test": {good}}
		result, err := w.fetch("http://good.test/")
		if err != nil || len(result.Text) > maxBody+1000 || !strings.Contains(result.Text, "was not read") {
			t.Errorf("%s: %d bytes, %v", name, len(result.Text), err)
		}
	}
}

func TestASlowBodyRunsOutOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			for range 100 {
				if _, err := io.WriteString(w, "x"); err != nil {
					return
				}
				_ = http.NewResponseController(w).Flush()
				select {
				case <-time.After(5 * time.Second):
				case <-r.Context().Done():
					return
				}
			}
		})
		w.names = map[string][]string{"good.test": {good}}
		began := time.Now()
		_, err := w.fetch("http://good.test/")
		if took := time.Since(began); err == nil || took != timeout || !strings.Contains(err.Error(), "longer than 30s") {
			t.Errorf("after %v: %v", took, err)
		}
	})
}

func TestStopEndsAFetch(t *testing.T) {
	w := newWorld(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	w.names = map[string][]string{"good.test": {good}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := w.tool().Run(ctx, call("http://good.test/"))
		ended <- err
	}()
	cancel()
	if err := <-ended; err == nil {
		t.Error("it ended well")
	}
}

func TestHostsNarrow(t *testing.T) {
	for _, c := range []struct {
		address string
		ok      bool
	}{
		{"http://docs.test/", true}, {"http://DOCS.test./x", true}, {"http://a.wiki.test/", true}, {"http://a.b.wiki.test:8080/", true},
		{"http://ports.test:9000/", true}, {"http://ports.test/", false}, {"http://wiki.test/", false}, {"http://evil.test/", false},
		{"http://docs.test.evil.test/", false}, {"http://evildocs.test/", false}, {"http://docs.test:9000/", false}, {"http://evil.test/docs.test", false},
		{"http://inside.test/", false}, {"http://leads.test/", false},
	} {
		w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Host == "leads.test" {
				http.Redirect(w, r, "http://evil.test/?what=was+asked", http.StatusFound)
				return
			}
			hello(w, r)
		})
		for _, name := range []string{"docs.test", "a.wiki.test", "a.b.wiki.test", "ports.test", "wiki.test", "evil.test", "docs.test.evil.test", "evildocs.test", "leads.test"} {
			w.names[name] = []string{good}
		}
		w.names["inside.test"] = []string{"10.0.0.1"}
		hosts := []string{"docs.test", "*.wiki.test", "ports.test:9000", "inside.test", "leads.test"}
		result, err := w.fetch(c.address, hosts...)
		if (err == nil) != c.ok {
			t.Errorf("%s gave %q, %v", c.address, result.Text, err)
		}
		if labels := w.tool(hosts...).LabelsOf(call(c.address)); c.ok && labels != (agent.Labels{Outside: true}) {
			t.Errorf("%s has the labels %+v", c.address, labels)
		}
		if strings.Contains(strings.Join(w.dials, " "), "10.0.0.1") || len(w.dials) > 1 {
			t.Errorf("%s dialled %v", c.address, w.dials)
		}
	}
	w := newWorld(t, hello)
	if labels := w.tool().LabelsOf(call("http://good.test/")); labels != (agent.Labels{Outside: true, WayOut: true}) {
		t.Errorf("without hosts the labels are %+v", labels)
	}
	// What the person gave is no way out; what the model makes of it is.
	for address, out := range map[string]bool{"http://given.test/a?b=c": false, "http://given.test/a?b=secret": true, "http://given.test/": true} {
		if labels := w.tool().LabelsOf(call(address)); labels != (agent.Labels{Outside: true, WayOut: out}) {
			t.Errorf("%s has the labels %+v", address, labels)
		}
	}
	for _, host := range []string{"", "http://docs.test", "Docs.test", "docs.test/path", "10.0.0.1", "localhost", "*", "*.", "*.93.184.216.34", "a.*.test", "docs.test:", "user@docs.test", "docs.test?x"} {
		if _, err := New(Config{Hosts: []string{host}}); err == nil {
			t.Errorf("the host %q is taken", host)
		}
	}
}

func FuzzAddresses(f *testing.F) {
	for _, address := range refused {
		f.Add(address)
	}
	for _, address := range []string{"http://good.test/", "https://bücher.test:8443/ä?ö#ü", "http://[2606:4700::1111]:80/", "HTTPS://A.B/%2e%2e/", "http://93.184.216.34./"} {
		f.Add(address)
	}
	f.Fuzz(func(t *testing.T, address string) {
		fetcher := newFetcher(Config{})
		to, err := fetcher.check(address)
		if err != nil {
			return
		}
		// What was taken means one thing only, wherever it is read again.
		again, err := fetcher.check(to.String())
		if err != nil || again.String() != to.String() {
			t.Fatalf("%q became %q and that %q, %v", address, to, again, err)
		}
		host := to.url.Hostname()
		if ip, err := netip.ParseAddr(host); err == nil {
			if !public(ip) {
				t.Fatalf("%q leads to %s", address, ip)
			}
			return
		}
		for _, r := range host {
			if !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '.') {
				t.Fatalf("%q has the host %q", address, host)
			}
		}
		if !strings.Contains(host, ".") || strings.HasSuffix(host, ".") || numeric(host[strings.LastIndex(host, ".")+1:]) || to.url.User != nil {
			t.Fatalf("%q has the host %q", address, host)
		}
	})
}
