//go:build (linux && (386 || amd64 || arm || arm64 || loong64 || ppc64le || riscv64 || s390x)) || (darwin && (amd64 || arm64)) || (freebsd && (amd64 || arm64))

package script

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"modernc.org/quickjs"
)

// prelude is run before the script. It takes the functions that it needs later while they are what they seem: a script may
// put others in their place.
const prelude = `(() => {
	const {say, eval: run, Function: compile, JSON: {stringify, parse}, String: text, Promise: promise, SyntaxError: unread, Error: fault} = globalThis;
	delete globalThis.say;
	const show = v => typeof v === "string" ? v : stringify(v) ?? text(v);
	const log = (...values) => { let line = ""; for (let i = 0; i < values.length; i++) line += (i ? " " : "") + show(values[i]); say(line); };
	globalThis.console = {log, info: log, warn: log, error: log, debug: log};
	globalThis.runScript = (source, input) => {
		delete globalThis.runScript;
		globalThis.input = input === "" ? undefined : parse(input);
		let value;
		try { value = run(source); } catch (e) {
			if (!(e instanceof unread) || !/return/.test(e.message)) throw e;
			value = compile(source)();
		}
		if (value instanceof promise) throw new fault("its value is a promise, and nothing is waited for here; write it without async");
		return stringify(typeof value === "bigint" ? text(value) : value);
	};
})()`

// interpret runs a script within its bounds, which of time is given.
func interpret(given task, limit time.Duration) (got answer) {
	var log logged
	defer func() {
		if p := recover(); p != nil {
			got = answer{Error: fmt.Sprintf("the interpreter gave up: %v", p)}
		}
		got.Log = log.text.String()
	}()
	vm, err := quickjs.NewVM()
	if err != nil {
		return answer{Error: "the interpreter did not start"}
	}
	defer vm.Close()
	vm.SetMemoryLimit(maxMemory) // of its stack the bound is its own, about 5,000 calls
	if err := vm.SetEvalTimeout(limit); err != nil {
		return answer{Error: "the interpreter did not start"}
	}
	if err := vm.RegisterFunc("say", log.add, false); err != nil {
		return answer{Error: "the interpreter did not start"}
	}
	if _, err := vm.Eval(prelude, quickjs.EvalGlobal); err != nil {
		return answer{Error: "the interpreter did not start"}
	}
	value, err := vm.Call("runScript", given.Source, string(given.Input))
	if err != nil {
		return answer{Error: why(err, limit)}
	}
	result, ok := value.(string)
	if !ok {
		return answer{} // there is no JSON for it, such as for undefined or a function
	}
	if !json.Valid([]byte(result)) {
		return answer{Error: "its value cannot be written as JSON"}
	}
	return answer{Result: json.RawMessage(result)}
}

// why is what went wrong in a script, in a few lines.
func why(err error, limit time.Duration) string {
	const most = 2000
	text := strings.TrimSpace(err.Error())
	if strings.Contains(text, "interrupted") {
		return fmt.Sprintf("it ran longer than %v", limit)
	}
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + " …"
	}
	switch text {
	case "":
		return "something was thrown that says nothing"
	case "null": // there was no memory left for the error itself
		return "it ran out of memory"
	}
	return text
}

// logged is what a script says, up to a bound.
type logged struct{ text strings.Builder }

func (l *logged) add(line string) {
	if room := maxLog - l.text.Len(); len(line)+1 > room {
		line = strings.ToValidUTF8(line[:max(0, min(room-1, len(line)))], "")
	}
	if l.text.Len() < maxLog {
		l.text.WriteString(line + "\n")
	}
}
