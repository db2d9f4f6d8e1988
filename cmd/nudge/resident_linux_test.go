package main

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestOnlyUnchangedPagesAreGivenBack: what the file does not hold any more, or never held, stays.
func TestOnlyUnchangedPagesAreGivenBack(t *testing.T) {
	const program = "/opt/my programs/nudge"
	line := func(addresses, perms, file string, anonymous int) string {
		return fmt.Sprintf("%s %s 00001000 fe:00 99    %s\nSize:  8 kB\nRss:  8 kB\nAnonymous:  %d kB\nVmFlags: rd mr\n", addresses, perms, file, anonymous)
	}
	smaps := line("00400000-011fd000", "r-xp", program, 0) +
		line("011fd000-02687000", "r--p", program, 0) +
		line("02687000-02688000", "r--p", program, 4) + // addresses were filled in
		line("02688000-02811000", "rw-p", program, 0) +
		line("02811000-02812000", "rwxp", program, 0) +
		line("02812000-02813000", "r--s", "/data/nudge.db", 0) +
		line("02813000-02814000", "r-xp", "/lib/libc.so", 0) +
		line("7ffcc5b6f000-7ffcc5b90000", "r--p", "", 0) +
		"zz-yy r-xp 0 fe:00 9 " + program + "\nAnonymous: 0 kB\n" +
		line("7ffe00000000-7ffe00001000", "r-xp", program, 0)
	want := []mapping{{0x400000, 0x11fd000}, {0x11fd000, 0x2687000}, {0x7ffe00000000, 0x7ffe00001000}}
	if got := unchanged(bufio.NewScanner(strings.NewReader(smaps)), program); !slices.Equal(got, want) {
		t.Errorf("these are given back: %x; these can be: %x", got, want)
	}
	// One that says nothing of what was changed counts as changed.
	if got := unchanged(bufio.NewScanner(strings.NewReader("00400000-011fd000 r-xp 0 fe:00 9 "+program+"\n")), program); len(got) > 0 {
		t.Errorf("these are given back without knowing: %x", got)
	}
}

// TestTheProgramGoesOnWithoutItsPages: they come back as they are touched.
func TestTheProgramGoesOnWithoutItsPages(t *testing.T) {
	ofFiles := func() (kilobytes int) {
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Skip("this system does not tell what is resident:", err)
		}
		_, rest, _ := strings.Cut(string(status), "RssFile:")
		if _, err := fmt.Sscan(rest, &kilobytes); err != nil {
			t.Skip("this system does not tell what of it is of files:", err)
		}
		return kilobytes
	}
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer smaps.Close()
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	const populateRead = 22 // MADV_POPULATE_READ, since Linux 5.14
	for _, m := range unchanged(bufio.NewScanner(smaps), program) {
		if _, _, errno := syscall.Syscall(syscall.SYS_MADVISE, m.from, m.to-m.from, populateRead); errno != 0 {
			t.Skip("this system cannot be told to map all of the program:", errno)
		}
	}
	before := ofFiles()
	if err := releaseProgram(); err != nil {
		t.Fatal(err)
	}
	if after := ofFiles(); after > before/2 {
		t.Errorf("%d KB of files are resident, of %d before", after, before)
	}
}
