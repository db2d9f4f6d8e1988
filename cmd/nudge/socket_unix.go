//go:build unix

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
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
	info, err := os.Lstat(path)
	switch {
	case err != nil:
	case info.Mode()&os.ModeSocket == 0: // it was exchanged, and what a link leads to is nothing of ours
		err = fmt.Errorf("%s is no socket any more", path)
	case info.Mode().Perm() != 0o600: // where a mask does not hold for sockets
		err = os.Chmod(path, 0o600)
	}
	if err != nil {
		server.Close()
		return nil, err
	}
	return server, nil
}

// isOwn says what is wrong with a socket that is not of the account whose the data file is: somebody else may have put it there,
// to be told what people write, and to answer them.
func isOwn(path, dataFile string) error {
	socket, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // the process does not listen, or no more
	}
	if err != nil {
		return err
	}
	file, err := os.Stat(dataFile)
	if err != nil {
		return err
	}
	of, known := socket.Sys().(*syscall.Stat_t)
	whose, alsoKnown := file.Sys().(*syscall.Stat_t)
	if socket.Mode()&os.ModeSocket == 0 || known && alsoKnown && of.Uid != whose.Uid {
		return errors.New("the socket beside it was not made by that process; remove it, and see who can write to the data directory")
	}
	return nil
}
