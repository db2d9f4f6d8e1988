//go:build linux || darwin

package workspace

import (
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestSpecialFilesAreNotOpened would hang if a pipe were opened, since nobody is at its other end.
func TestSpecialFilesAreNotOpened(t *testing.T) {
	d := newDesk(t)
	if err := syscall.Mkfifo(filepath.Join(d.path(), "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(d.path()) // the address of a socket is short
	socket, err := net.Listen("unix", "socket")
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	for _, name := range []string{"pipe", "socket"} {
		d.refused("read_file", args{"path": name}, "is a device, pipe or socket")
		d.refused("write_file", args{"path": name, "content": "x"}, "is a device, pipe or socket")
		in := d.invocation("write_file", ann, args{"path": name, "content": "x"})
		if digest := d.tools["write_file"].Digest(in); !strings.HasPrefix(digest, "special:") {
			t.Errorf("the digest of a %s is %q", name, digest)
		}
	}
	if got := d.must("list_files", args{}); got != "pipe (not a file)\nsocket (not a file)\n" {
		t.Errorf("list: %q", got)
	}
	root, err := d.dirs.Root(ann)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if file, _, err := openAnyway(root, "pipe"); err == nil || !strings.Contains(err.Error(), "is a device, pipe or socket") {
		t.Errorf("a pipe in the place of a file: %v, %v", file, err)
	}
}
