package main

import (
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"nudge/agent/tool/script"
)

// scriptName is the command of a process that runs one script.
const scriptName = "script-process"

// scriptCommand runs one script from the input, in a process that is started for it and can do nothing else.
func (a *app) scriptCommand() *cobra.Command {
	return &cobra.Command{
		Use:    scriptName,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if a.host != nil {
				return nil // it would confine the program that serves
			}
			if status := script.Child(a.in, a.out); status != 0 {
				return &exitError{status}
			}
			return nil
		},
	}
}

// scriptProcess is how this program is started to run a script; false where that cannot be done. On Linux it is found by
// what runs, not by its name, since that may be another program by now.
func scriptProcess() (self script.Self, ok bool) {
	self = script.Self{Argv: []string{"nudge", scriptName}}
	switch runtime.GOOS {
	case "linux":
		self.Path = "/proc/self/exe"
		return self, true
	case "darwin", "freebsd":
		path, err := os.Executable()
		self.Path = path
		return self, err == nil
	}
	return self, false
}
