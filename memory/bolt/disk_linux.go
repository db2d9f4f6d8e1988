package bolt

import "golang.org/x/sys/unix"

// disk says what kind of file system a directory or file is on, by the number that statfs(2) gives it, and how many
// bytes this account may still write there.
func disk(path string) (kind uint32, room int64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, 0, err
	}
	return uint32(s.Type), int64(s.Bavail) * int64(s.Bsize), nil
}
