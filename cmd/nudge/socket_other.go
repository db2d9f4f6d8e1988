//go:build !unix

package main

import "net"

// listenPrivately opens a socket in the data directory, which only this account can reach.
func listenPrivately(path string) (net.Listener, error) { return net.Listen("unix", path) }

// isOwn takes a socket in the data directory for that of who holds the data file.
func isOwn(path, dataFile string) error { return nil }
