// Package script gives the agent a place to reckon in: JavaScript that reaches nothing.
//
// A script runs in an interpreter that has no files, no network, no programs and no modules, only the language and
// console.log. The interpreter (interpreter.go) bounds memory, time and depth. It is C turned into Go, so what it does with
// a hostile script is not taken on trust: it runs in a process of its own ([Child]), which is this program started
// anew with an empty environment in the root folder, and which before it reads the script gives up what a script has
// no use for (limit_unix.go). [New] makes the tool, which starts that process for each call and ends it with the call.
package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"nudge/agent"
	"nudge/agent/tool/queue"
	"nudge/schedule/process"
)

// Bounds of one script.
const (
	maxMemory = 64 << 20        // bytes that its values may take
	maxTime   = 5 * time.Second // of the interpreter
	allTime   = 8 * time.Second // of its process, which must start and may hang
	maxResult = 128 << 10       // bytes of JSON
	maxLog    = 32 << 10        // bytes
	// mostAtOnce is how many scripts run side by side for all people, and mostOwn for one: an answer of a model can ask for dozens.
	mostAtOnce = 4
	mostOwn    = 2
)

// Self is how the program is started anew to run a script.
type Self struct {
	Path string   // its file
	Argv []string // what makes it call Child
}

// task is what the process of a script reads, answer what it writes, as JSON.
type (
	task struct {
		Source string          `json:"source"`
		Input  json.RawMessage `json:"input,omitempty"`
	}
	answer struct {
		Result json.RawMessage `json:"result,omitempty"` // without one when the script has none, or failed
		Log    string          `json:"log,omitempty"`
		Error  string          `json:"error,omitempty"`
	}
)

// New makes the tool run_script.
func New(self Self) agent.Tool {
	places := queue.NewPlaces(mostAtOnce, mostOwn)
	return agent.Tool{
		Spec: agent.Spec{
			Name:        "run_script",
			Description: "Runs JavaScript, without files and network, on the JSON input; gives the last value and console.log.",
			Schema: json.RawMessage(`{"type":"object","properties":{"source":{"type":"string"},` +
				`"input":{}},"required":["source"],"additionalProperties":false}`),
			Effect:  agent.Read,
			Timeout: allTime + 5*time.Second, // later than the script's own, which says more
		},
		Run: func(ctx context.Context, in agent.Invocation) (agent.Result, error) {
			var given task
			if err := in.Decode(&given); err != nil {
				return agent.Result{}, err
			}
			leave, err := places.Enter(ctx, in.Person.ID)
			if err != nil {
				return agent.Result{}, agent.NotRun(errors.New("not run: too many scripts run already; try again later, one at a time"))
			}
			defer leave()
			return run(ctx, self, given, allTime)
		},
	}
}

func run(ctx context.Context, self Self, given task, limit time.Duration) (agent.Result, error) {
	input, err := json.Marshal(given)
	if err != nil {
		return agent.Result{}, fmt.Errorf("hand the script over: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	outcome, err := process.Ask(limited, process.Spec{
		Path: self.Path, Argv: self.Argv, Dir: "/", Bare: true, Input: input, Limit: 2*maxResult + 8*maxLog,
	})
	switch {
	case errors.Is(err, process.ErrUnsupported):
		return agent.Result{}, errors.New("scripts cannot be run on this system")
	case err != nil:
		return agent.Result{}, errors.New("the process for the script could not be started")
	case ctx.Err() != nil:
		return agent.Result{}, context.Cause(ctx)
	case outcome.TimedOut:
		return stopped("it took longer than %v", limit), nil
	case outcome.Exit != 0 || outcome.LeftOut > 0:
		return stopped("it used more memory or time than it may, which is %d MiB and %v", maxMemory>>20, maxTime), nil
	}
	var got answer
	if err := json.Unmarshal(outcome.Output, &got); err != nil {
		return stopped("its process gave no answer"), nil
	}
	return got.result(), nil
}

func stopped(format string, values ...any) agent.Result {
	return agent.Result{Text: "The script was stopped: " + fmt.Sprintf(format, values...) + ".", Failed: true}
}

// result is an answer for the model.
func (a answer) result() agent.Result {
	var text strings.Builder
	switch {
	case a.Error != "":
		text.WriteString("The script failed: " + a.Error)
	case len(a.Result) > 0:
		text.Write(a.Result)
	case a.Log == "":
		text.WriteString("The script ended without a value; end it with the expression whose value is wanted.")
	}
	if a.Log != "" {
		text.WriteString("\nIt logged:\n" + a.Log)
	}
	return agent.Result{Text: strings.TrimSpace(text.String()), Failed: a.Error != ""}
}
