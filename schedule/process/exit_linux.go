package process

import "golang.org/x/sys/unix"

// awaitExit waits until a child has ended and leaves it unreaped, so that its id, which is its group's, stays taken.
// It returns false at once where that cannot be done.
func awaitExit(pid int) bool {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return err == nil
		}
	}
}
