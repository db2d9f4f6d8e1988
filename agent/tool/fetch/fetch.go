// Package fetch gives the agent pages of the public internet to read, and nothing else that a network has.
//
// An address is checked as it is written (address.go), the names in it are looked up once and every answer is checked
// (public.go), and what was checked is what is dialled, again for each redirect. No proxy, cookie, credential or other
// setting of this machine goes along. What comes back is made readable (page.go) and is text of strangers: it is marked
// so, and nothing in it is an order. A [Guard] does the part on the network for others (guard.go).
package fetch

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"time"

	"nudge/agent"
)

// Bounds of one call.
const (
	maxBody   = 4 << 20  // bytes of a page, after decompression; what comes after is not read
	maxHeader = 64 << 10 // bytes of an answer's header
	redirects = 5
	timeout   = 30 * time.Second // for all of it

	mostAtOnce = 16 // calls, and mostOwn of one person's: an answer of a model can ask for dozens of pages
	mostOwn    = 4
)

// Config is what the tool is made of. The zero value reads from the whole public internet.
type Config struct {
	// Hosts are the only ones that may be read from, if there are any; reading from them sends nothing out. Each is as
	// [CheckHost] wants it. They must be public all the same.
	Hosts []string
	// Lookup finds the addresses of a name, Dial connects to one of them. They may be called concurrently. Nil means the
	// system's own.
	Lookup func(ctx context.Context, name string) ([]netip.Addr, error)
	Dial   func(ctx context.Context, address netip.AddrPort) (net.Conn, error)
}

func (c Config) check() error {
	for _, host := range c.Hosts {
		if err := CheckHost(host); err != nil {
			return err
		}
	}
	return nil
}

// New makes the tool fetch_page. A host that cannot be one is an error.
func New(c Config) (agent.Tool, error) {
	if err := c.check(); err != nil {
		return agent.Tool{}, fmt.Errorf("make the tool fetch_page: %w", err)
	}
	f := newFetcher(c)
	description := "Reads a page of the public web as text."
	if len(c.Hosts) > 0 {
		description = "Reads a page as text, from " + listed(c.Hosts) + " only."
	}
	return agent.Tool{
		Spec: agent.Spec{
			Name:        "fetch_page",
			Description: description,
			Schema: json.RawMessage(`{"type":"object","properties":{"url":{"type":"string"}},` +
				`"required":["url"],"additionalProperties":false}`),
			Effect:  agent.Read,
			Labels:  agent.Labels{Outside: true, WayOut: true},
			Timeout: timeout + 5*time.Second, // later than the call's own, which says more
		},
		Run:      f.run,
		Judge:    f.judge,
		LabelsOf: f.labels,
	}, nil
}

// read takes the address out of a call and checks it as far as that needs no network.
func (f *fetcher) read(in agent.Invocation) (to target, written string, err error) {
	var arguments struct {
		URL string `json:"url"`
	}
	if err := in.Decode(&arguments); err != nil {
		return target{}, "", err
	}
	to, err = f.check(arguments.URL)
	return to, arguments.URL, err
}

func (f *fetcher) run(ctx context.Context, in agent.Invocation) (agent.Result, error) {
	to, _, err := f.read(in)
	if err != nil {
		return agent.Result{}, err
	}
	leave, err := f.places.Enter(ctx, in.Person.ID)
	if err != nil {
		return agent.Result{}, agent.NotRun(fmt.Errorf("fetch %s: too many pages are being read already; try again later, a few at a time", to))
	}
	defer leave()
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("fetch %s: it took longer than %v", to, timeout))
	defer cancel()
	page, err := f.get(ctx, to)
	switch {
	case ctx.Err() != nil:
		return agent.Result{}, context.Cause(ctx)
	case err != nil:
		return agent.Result{}, fmt.Errorf("fetch %s: %w", to, err)
	}
	return agent.Result{Text: page.text(), Failed: page.status >= 400}, nil
}

// judge refuses what would never be fetched, so that nobody is asked about it.
func (f *fetcher) judge(in agent.Invocation) (agent.Policy, string, error) {
	_, _, err := f.read(in)
	return agent.PolicyNo, "", err
}

// labels of a call: what an address asks for can tell its host anything, unless the operator or the person
// chose it.
func (f *fetcher) labels(in agent.Invocation) agent.Labels {
	to, written, err := f.read(in)
	chosen := err == nil && (listedIn(f.Hosts, to.url) || in.Given != nil && (in.Given(written) || in.Given(to.String())))
	return agent.Labels{Outside: true, WayOut: !chosen}
}
