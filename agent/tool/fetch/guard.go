package fetch

import (
	"errors"
	"fmt"
	"net/http"
)

// Guard makes requests under the rules of fetch_page for whoever else reads addresses that the operator did not write:
// each is checked as it is written, and what its name leads to again when it is dialled. It follows no redirects: who does
// sends the next address through it as well. It may be used concurrently.
type Guard struct{ fetcher *fetcher }

// NewGuard makes a guard. A host that cannot be one is an error.
func NewGuard(c Config) (*Guard, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return &Guard{newFetcher(c)}, nil
}

// Check says what is wrong with an address as far as that needs no network.
func (g *Guard) Check(address string) error {
	_, err := g.fetcher.check(address)
	return err
}

// RoundTrip makes one request for a page. Its error holds no address of the machine's own network. The caller bounds the
// time, by the request's context, and the body.
func (g *Guard) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet || request.Body != nil {
		return nil, errors.New("only pages are read there")
	}
	to, err := g.fetcher.check(request.URL.String())
	if err != nil {
		return nil, err
	}
	ctx := request.Context()
	checked := request.Clone(ctx)
	checked.URL, checked.Host = to.url, ""
	answer, err := g.fetcher.client.Transport.RoundTrip(checked)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("wait for its answer: %w", ctx.Err())
	case err != nil:
		return nil, reason(err)
	}
	return answer, nil
}
