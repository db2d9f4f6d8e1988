package script

import (
	"encoding/json"
	"fmt"
	"io"
)

// Child is the process of one script: it reads the script and writes what came of it. Before that it gives up what a script
// has no use for, so the process can do nothing else any more. It returns the exit status.
func Child(in io.Reader, out io.Writer) int {
	if err := confine(); err != nil {
		return fail(out, "it could not be confined: "+err.Error())
	}
	var given task
	if err := json.NewDecoder(in).Decode(&given); err != nil {
		return fail(out, "it did not arrive whole")
	}
	got := interpret(given, maxTime)
	if len(got.Result) > maxResult {
		got.Error = fmt.Sprintf("its value has %d bytes as JSON, at most %d can be given back", len(got.Result), maxResult)
		got.Result = nil
	}
	if json.NewEncoder(out).Encode(got) != nil {
		return 1
	}
	return 0
}

func fail(out io.Writer, why string) int {
	if json.NewEncoder(out).Encode(answer{Error: why}) != nil {
		return 1
	}
	return 0
}
