package hook

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"nudge/schedule/process"
)

var (
	errTime  = errors.New("it had not decided when its time was up, and was killed")
	errFlood = errors.New("it printed more than 1 MiB, and was killed")
	errHeld  = errors.New("what it started goes on and holds its input or output open; let that use files of its own")
)

// ending is the error of a program that did not end well; nil when its output is a whole one. ctx is the program's.
func ending(ctx context.Context, outcome process.Outcome) error {
	const mustEnd = "it must end with exit status 0 to rule: "
	switch {
	case outcome.LeftOut > 0:
		return errFlood
	case outcome.TimedOut || outcome.Cancelled:
		return context.Cause(ctx)
	case outcome.Signal != "":
		return fmt.Errorf("%ssignal: %s", mustEnd, outcome.Signal)
	case outcome.Exit != 0:
		return fmt.Errorf("%sexit status %d", mustEnd, outcome.Exit)
	case outcome.Partial:
		return errHeld
	}
	return nil
}

// maxComplaint is how many bytes of a program's error output an error repeats. The last ones say most.
const maxComplaint = 400

// complaint puts a program's error output at the end of an error's sentence: "" when there is none.
func complaint(written []byte) string {
	said := line(string(written[max(0, len(written)-maxComplaint):]))
	switch {
	case said == "":
		return ""
	case len(written) > maxComplaint:
		return "; the end of its error output: …" + said
	}
	return "; its error output: " + said
}

// line makes one line of a text that can be shown: blanks are single, and what cannot be printed is left out.
func line(text string) string {
	printable := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r) || r == unicode.ReplacementChar:
			return -1
		}
		return r
	}, text)
	return strings.Join(strings.Fields(printable), " ")
}

// brief is the beginning of a text as one line of at most so many runes, and a mark where it was cut.
func brief(text string, most int) string {
	runes := []rune(line(text))
	if len(runes) <= most {
		return string(runes)
	}
	return string(runes[:most]) + "…"
}
