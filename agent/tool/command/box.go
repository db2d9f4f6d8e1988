package command

import (
	"errors"
	"os/exec"
)

// boxProgram is bubblewrap, which makes the box.
const boxProgram = "bwrap"

// errNoBox is the reason why a command in a box cannot run.
var errNoBox = errors.New("it runs only in a box, and the program for that, " + boxProgram + ", is not installed here")

// shownInBox are the folders of programs and their libraries, which can be read in a box. Not all are everywhere.
var shownInBox = []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/localtime"}

// boxed is a command in a box of bubblewrap's: it has no network, sees no process but its own, can write to its folder alone,
// and of the rest of the machine sees only the programs that the system came with. dir is absolute.
func boxed(argv []string, dir string) ([]string, error) {
	if _, err := exec.LookPath(boxProgram); err != nil {
		return nil, errNoBox
	}
	box := []string{boxProgram, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--ro-bind", "/usr", "/usr"}
	for _, folder := range shownInBox {
		box = append(box, "--ro-bind-try", folder, folder)
	}
	// The folder comes last, as it may lie below one that is covered before.
	box = append(box, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--bind", dir, dir, "--chdir", dir, "--setenv", "HOME", dir, "--")
	return append(box, argv...), nil
}
