package main

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// releaseProgram gives back the pages of the program itself that are mapped and unchanged. A start runs through much of it that
// is never run again, and around each page that is touched the kernel maps fifteen others, all of which count as ours. What is
// needed again is mapped again when it is touched, from the kernel's cache as a rule.
func releaseProgram() error {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return err
	}
	defer maps.Close()
	for _, m := range unchanged(bufio.NewScanner(maps), program) {
		if _, _, errno := syscall.Syscall(syscall.SYS_MADVISE, m.from, m.to-m.from, syscall.MADV_DONTNEED); errno != 0 {
			return os.NewSyscallError("madvise", errno)
		}
	}
	return nil
}

// mapping is a range of addresses.
type mapping struct{ from, to uintptr }

// unchanged reads the mappings of a file in which nothing can be written and nothing has been: all that a page of such a one
// holds is in the file. In a program that can be loaded anywhere, tables of addresses are filled in and closed afterwards.
func unchanged(smaps *bufio.Scanner, file string) (all []mapping) {
	var m mapping
	isFile, clean := false, false
	keep := func() {
		if isFile && clean {
			all = append(all, m)
		}
	}
	for smaps.Scan() {
		fields := strings.Fields(smaps.Text())
		if len(fields) < 2 {
			continue
		}
		if from, to, found := strings.Cut(fields[0], "-"); found && !strings.HasSuffix(fields[0], ":") {
			keep()
			m.from, m.to = address(from), address(to)
			isFile = len(fields) > 5 && strings.Join(fields[5:], " ") == file && strings.HasPrefix(fields[1], "r-") && m.from < m.to
			clean = false
			continue
		}
		if fields[0] == "Anonymous:" {
			clean = fields[1] == "0"
		}
	}
	keep()
	if smaps.Err() != nil {
		return nil
	}
	return all
}

func address(hex string) uintptr {
	n, err := strconv.ParseUint(hex, 16, strconv.IntSize)
	if err != nil {
		return 0
	}
	return uintptr(n)
}
