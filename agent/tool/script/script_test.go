//go:build linux

package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"nudge/agent"
)

// child is the name under which this test is the process of a script.
const child = "child-of-a-script"

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == child {
		syscall.Exit(Child(os.Stdin, os.Stdout)) // unlike that of os, it does not wait for the race detector
	}
	goleak.VerifyTestMain(m)
}

var self = Self{Path: "/proc/self/exe", Argv: []string{child}}

// call runs a script in a process of its own.
func call(ctx context.Context, source string, limit time.Duration) (agent.Result, error) {
	return run(ctx, self, task{Source: source}, limit)
}

// here runs a script in this process, which takes less time than making another.
func here(source, input string) agent.Result {
	return interpret(task{Source: source, Input: json.RawMessage(input)}, 300*time.Millisecond).result()
}

func TestScripts(t *testing.T) {
	for _, c := range []struct{ name, source, input, want string }{
		{"a sum", "1 + 2 * 3", "", "7"},
		{"a text", `"a" + 'b'`, "", `"ab"`},
		{"an object", "const a = {n: [1, 2.5, null, true], s: 'ü\\u2028'}; a", "", `{"n":[1,2.5,null,true],"s":"ü` + "\u2028" + `"}`},
		{"input", "input.rows.map(r => r * 2)", `{"rows":[1,2,3]}`, "[2,4,6]"},
		{"no input", "typeof input", "", `"undefined"`},
		{"input null", "input === null", "null", "true"},
		{"input with a trap", `Object.keys(input).length + " " + ({}).x`, `{"__proto__":{"x":1}}`, `"1 undefined"`},
		{"return", "let n = 0; for (const x of input) n += x; return {n}", "[1,2,3]", `{"n":6}`},
		{"a big number", "2n ** 100n", "", `"1267650600228229401496703205376"`},
		{"logs", `console.log("one", 2, {a: 1}); console.error(undefined); 5`, "", "5\nIt logged:\none 2 {\"a\":1}\nundefined"},
		{"only logs", `console.log("x")`, "", "It logged:\nx"},
		{"nothing", "let a = 1", "", "The script ended without a value"},
		{"a function", "() => 1", "", "The script ended without a value"},
		{"thrown", `throw new TypeError("no such thing")`, "", "The script failed: TypeError: no such thing"},
		{"thrown text", `throw "up"`, "", "The script failed: "},
		{"not the language", "let = = 3", "", "The script failed: SyntaxError"},
		{"a promise", "(async () => 1)()", "", "The script failed: Error: its value is a promise"},
		{"a circle", "const a = {}; a.a = a; a", "", "The script failed: TypeError: circular reference"},
		{"a date", "new Date(0).toISOString()", "", `"1970-01-01T00:00:00.000Z"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			result := here(c.source, c.input)
			if failed := strings.HasPrefix(c.want, "The script failed: "); !strings.HasPrefix(result.Text, c.want) || failed != result.Failed {
				t.Errorf("it gave %q, failed %v; want %q", result.Text, result.Failed, c.want)
			}
		})
	}
}

// reach is what a script may try to get hold of. Each gives true when there is nothing.
var reach = []string{
	`typeof require === "undefined"`, `typeof std === "undefined"`, `typeof os === "undefined"`, `typeof process === "undefined"`, `typeof fetch === "undefined"`,
	`typeof XMLHttpRequest === "undefined"`, `typeof scriptArgs === "undefined"`, `typeof load === "undefined"`, `typeof loadScript === "undefined"`, `typeof bjson === "undefined"`,
	`typeof setTimeout === "undefined"`, `typeof WebAssembly === "undefined"`, `typeof say === "undefined"`, `typeof runScript === "undefined"`, `typeof Worker === "undefined"`,
	`(() => { try { return Function("return typeof require + typeof std + typeof os")() === "undefinedundefinedundefined" } catch (e) { return true } })()`,
	`(() => { try { import("std"); return true } catch (e) { return true } })()`, `(() => { try { eval('import * as os from "os"'); return false } catch (e) { return true } })()`,
	`Object.getOwnPropertyNames(globalThis).filter(n => /file|exec|open|env|sock|http|spawn|popen|read/i.test(n)).length === 0`,
	`(() => { try { return (function () { return this === globalThis || this === undefined })() } catch (e) { return true } })()`,
}

func TestAScriptReachesNothing(t *testing.T) {
	for _, source := range reach {
		if result := here(source, ""); result.Text != "true" {
			t.Errorf("%s gave %q", source, result.Text)
		}
	}
}

// hostile are scripts that want more than they may have, and what becomes of each.
var hostile = []struct{ name, source, want string }{
	{"an endless loop", "while (true) {}", "longer than 300ms"},
	{"an endless loop that catches", "while (true) { try { while (true) {} } catch (e) {} }", "longer than 300ms"},
	{"a loop in a getter of the value", "({get a() { while (true) {} }})", "longer than 300ms"},
	{"a loop in toJSON", "({toJSON() { for (;;) {} }})", "longer than 300ms"},
	{"a regular expression that backtracks", `/^(a+)+$/.test("a".repeat(40) + "b")`, "longer than 300ms"},
	{"an allocation bomb", "const a = []; while (true) a.push(new ArrayBuffer(1e6))", "memory"},
	{"a bomb of one piece", "new ArrayBuffer(2 ** 31)", "The script "},
	{"a bomb of text", `let s = "x"; while (true) s += s`, "The script "},
	{"a bomb by repeat", `"x".repeat(2 ** 29)`, "The script "},
	{"a big number", "2n ** (2n ** 40n)", "The script "},
	{"a deep stack", "(function f() { f() })()", "The script failed: InternalError: stack overflow"},
	{"a deep value", "let a = []; for (let i = 0; i < 1e6; i++) a = [a]; a", "The script "},
	{"a deep regular expression", `new RegExp("(".repeat(1e6))`, "The script failed"},
	{"a flood of logs", `while (true) console.log("y".repeat(1000))`, "longer than 300ms"},
	{"an overwritten stringify", `JSON.stringify = () => { while (true) {} }; Array.prototype.join = JSON.stringify; String = Promise = SyntaxError = JSON.stringify; "kept"`, `"kept"`},
	{"a poisoned prototype", `Object.prototype.toJSON = () => "mine"; Object.defineProperty(Object.prototype, "Error", {get() { return "x" }}); ({a: 1})`, `"mine"`},
	{"a poisoned iterator", `Array.prototype[Symbol.iterator] = () => { throw new Error("mine") }; console.log("a", "b"); 1`, "1"},
	{"thrown traps", `throw {get message() { while (true) {} }, toString() { while (true) {} }}`, "The script failed"},
	{"a proxy", `new Proxy({}, {get() { throw new Error("trapped") }, ownKeys() { throw new Error("trapped") }})`, "trapped"},
	{"a task that goes on", `const f = () => Promise.resolve().then(f); f(); 1`, "1"},
	{"the frozen world", "Object.freeze(globalThis); Object.freeze(Object.prototype); 1", "1"},
	{"finalizers", `const r = new FinalizationRegistry(() => { while (true) {} }); r.register({}, 1); 1`, "1"},
	{"half a letter", `"\ud800"`, `"\ud800"`},
}

func TestHostileScriptsAreHeld(t *testing.T) {
	for _, c := range hostile {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			result := here(c.source, "")
			if !strings.Contains(result.Text, c.want) || len(result.Text) > 2*maxResult+maxLog {
				t.Errorf("it gave %.300q; want %q", result.Text, c.want)
			}
		})
	}
}

func TestTheToolRunsAProcess(t *testing.T) {
	t.Setenv("NUDGE_TEST_KEY", "secret-of-the-parent")
	tool := New(self)
	result, err := tool.Run(t.Context(), agent.Invocation{Arguments: json.RawMessage(`{"source":"console.log('x'); input.a + 1","input":{"a":41}}`)})
	if err != nil || result.Text != "42\nIt logged:\nx" || result.Failed {
		t.Errorf("it gave %+v, %v", result, err)
	}
	if _, err := agent.CompileSchema(tool.Schema); err != nil {
		t.Error(err)
	}
}

// What the interpreter itself does not hold, its process does.
func TestTheProcessIsHeld(t *testing.T) {
	for _, c := range []struct {
		name, source string
		limit        time.Duration
		want         string
	}{
		{"a loop of the interpreter's own", "const a = []; a[4294967294] = 1; JSON.stringify(a).length", 500 * time.Millisecond, "it took longer than 500ms"},
		{"a deep stack that catches", "(function f() { try { f() } catch (e) { f() } })()", 500 * time.Millisecond, "it took longer than 500ms"},
		{"a long value", `"z".repeat(1e6)`, patience, "its value has 1000002 bytes as JSON"},
		{"a bomb", "const a = []; while (true) a.push(new Uint8Array(1e6))", patience, "The script "},
		{"a long log", `for (let i = 0; i < 2e4; i++) console.log("y")`, patience, "It logged:\ny\n"},
		{"a deep source", "eval('['.repeat(1e5))", patience, "The script "},
		{"a deep stack", "(function f() { f() })()", patience, "The script failed: InternalError: stack overflow"},
		{"no memory", "const a = []; while (true) a.push(new ArrayBuffer(1e6))", patience, "The script failed: InternalError: out of memory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if raceDetector && strings.HasPrefix(c.name, "a deep") {
				c.want = "The script "
			}
			result, err := call(t.Context(), c.source, c.limit)
			if err != nil || !strings.Contains(result.Text, c.want) || len(result.Text) > maxResult+maxLog {
				t.Errorf("it gave %.300q, %v; want %q", result.Text, err, c.want)
			}
		})
	}
}

// patience is waited for only when something is wrong.
const patience = time.Minute

func TestStopEndsAScript(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stopped by a person")
	cancelled := time.AfterFunc(50*time.Millisecond, func() { cancel(stop) })
	defer cancelled.Stop()
	if _, err := call(ctx, "while (true) {}", patience); !errors.Is(err, stop) {
		t.Errorf("it ended with %v", err)
	}
}

func TestProcessesThatAreNone(t *testing.T) {
	for _, c := range []struct {
		self Self
		want string
	}{
		{Self{Path: "/nowhere/nudge", Argv: []string{child}}, "could not be started"},
		{Self{Path: "/bin/false", Argv: []string{"false"}}, "stopped"},
		{Self{Path: "/bin/echo", Argv: []string{"echo", "no answer"}}, "gave no answer"},
	} {
		result, err := run(t.Context(), c.self, task{Source: "1"}, patience)
		if err == nil && !strings.Contains(result.Text, c.want) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v gave %q, %v", c.self, result.Text, err)
		}
	}
}

// One answer of a model can ask for dozens of scripts that all take what they may: few run at once, and of one person's so few that
// there are places left for others.
func TestFewScriptsRunAtOnce(t *testing.T) {
	for people, want := range map[int]int{1: mostOwn, 3: mostAtOnce} {
		runMany(t, people, want)
	}
}

func runMany(t *testing.T, people, want int) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	tool := New(self)
	var calls sync.WaitGroup
	for n := range 6 * mostAtOnce {
		person := agent.Person{ID: agent.PersonID(fmt.Sprint("api:", n%people))}
		calls.Go(func() {
			if _, err := tool.Run(ctx, agent.Invocation{Person: person, Arguments: json.RawMessage(`{"source":"while (true) {}"}`)}); err == nil {
				t.Error("a script that never ends has a result")
			}
		})
	}
	most := 0
	for began := time.Now(); time.Since(began) < 5*time.Second && most < want; {
		most = max(most, children(t))
	}
	for range 100 {
		most = max(most, children(t))
	}
	stop()
	calls.Wait()
	if most != want {
		t.Errorf("of %d people %d ran at once, not %d", people, most, want)
	}
}

// children is how many processes this one has started that have not ended.
func children(t *testing.T) (n int) {
	t.Helper()
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		data, err := os.ReadFile(list)
		if err == nil { // else the thread has just ended
			n += len(strings.Fields(string(data)))
		}
	}
	return n
}
