package web

import (
	"net"
	"sync"
)

// boundedListener accepts no more connections at once than it has places for.
type boundedListener struct {
	net.Listener
	places chan struct{}
	closed chan struct{}
	once   sync.Once
}

func bounded(l net.Listener, most int) net.Listener {
	return &boundedListener{Listener: l, places: make(chan struct{}, most), closed: make(chan struct{})}
}

// Accept waits for a place, then for a connection.
func (l *boundedListener) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	return &placedConn{Conn: conn, leave: sync.OnceFunc(func() { <-l.places })}, nil
}

// Close ends an Accept that waits.
func (l *boundedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// placedConn gives its place back when it is closed.
type placedConn struct {
	net.Conn
	leave func()
}

// Close closes the connection.
func (c *placedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
