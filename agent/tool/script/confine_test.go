//go:build linux

package script

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestConfine looks at a process that has confined itself, from inside.
func TestConfine(t *testing.T) {
	if os.Getenv("NUDGE_TEST_CONFINED") == "" {
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestConfine$", "-test.v")
		cmd.Env = []string{"NUDGE_TEST_CONFINED=1", "TMPDIR=" + t.TempDir()}
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "held: open, write, listen, exec") {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	var held []string
	if err := confine(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Open("/etc/hostname"); err != nil {
		held = append(held, "open")
	}
	if err := os.WriteFile(os.TempDir()+"/x", []byte("x"), 0o600); err != nil {
		held = append(held, "write")
	}
	if _, _, err := os.Pipe(); err != nil { // sockets and pipes are open files as well
		held = append(held, "listen")
	}
	if err := exec.Command("/bin/true").Run(); err != nil {
		held = append(held, "exec")
	}
	t.Log("held: " + strings.Join(held, ", "))
}
