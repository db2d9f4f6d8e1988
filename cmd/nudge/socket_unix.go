//go:build unix

package main

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// listenPrivately opens a socket that only this account can reach: it is made under a mask, so that there is no
// moment in which others could.
func listenPrivately(path string) (net.Listener, error) {
	mask := syscall.Umask(0o177)
	server, err := net.Listen("unix", path)
	syscall.Umask(mask)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(filepath.Clean(path), 0o600); err != nil {
		server.Close()
		return nil, err
	}
	return server, nil
}
