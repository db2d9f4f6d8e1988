package web

import (
	"errors"
	"net"
	"testing"
)

// TestBounded fills a listener of two places: the third connection is taken when one of the two is closed.
func TestBounded(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := bounded(inner, 2)
	accepted := make(chan net.Conn)
	ended := make(chan error, 1)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				ended <- err
				return
			}
			accepted <- conn
		}
	}()
	for range 4 {
		conn, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	first, second := <-accepted, <-accepted
	if n := len(l.(*boundedListener).places); n != 2 {
		t.Errorf("%d places are taken", n)
	}
	for range 2 { // closing twice gives one place back
		_ = first.Close()
	}
	third := <-accepted
	select {
	case <-accepted:
		t.Error("a third connection is open at once")
	default:
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("accepting ended with %v", err)
	}
	_ = second.Close()
	_ = third.Close()
}
