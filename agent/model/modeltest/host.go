package modeltest

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// host is what the servers have in common: a port of this machine, and the requests that came to it.
type host[R any] struct {
	url    string
	client *http.Client
	closed chan struct{}

	mu       sync.Mutex
	requests []R
}

// open starts to serve, until the test ends.
func (h *host[R]) open(t testing.TB, handler http.Handler) {
	t.Helper()
	web := httptest.NewServer(handler)
	h.url, h.client, h.closed = web.URL, web.Client(), make(chan struct{})
	t.Cleanup(func() {
		close(h.closed)
		web.CloseClientConnections()
		web.Close()
	})
}

// record keeps a request and returns its number, counted from 1.
func (h *host[R]) record(req R) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.requests = append(h.requests, req)
	return len(h.requests)
}

// URL returns what to configure as base_url.
func (h *host[R]) URL() string { return h.url }

// Client returns an HTTP client whose connections end with the server.
func (h *host[R]) Client() *http.Client { return h.client }

// Requests returns the requests so far, in the order in which they came.
func (h *host[R]) Requests() []R {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]R(nil), h.requests...)
}
