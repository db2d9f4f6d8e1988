//go:build darwin || freebsd || netbsd || openbsd

package process

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// awaitExit waits until a child has ended and leaves it unreaped, so that its id, which is its group's, stays taken.
// It returns false at once where that cannot be done.
func awaitExit(pid int) bool {
	queue, err := unix.Kqueue()
	if err != nil {
		return false
	}
	defer unix.Close(queue)
	var change unix.Kevent_t
	unix.SetKevent(&change, pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	change.Fflags = unix.NOTE_EXIT
	changes := []unix.Kevent_t{change}
	for {
		events := make([]unix.Kevent_t, 1)
		n, err := unix.Kevent(queue, changes, events, nil)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.ESRCH: // it ended before it could be watched
			return true
		case err != nil:
			return false
		case n == 1 && events[0].Flags&unix.EV_ERROR != 0:
			return syscall.Errno(events[0].Data) == unix.ESRCH
		case n == 1:
			return true
		}
	}
}
