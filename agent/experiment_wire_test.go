package agent_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model"
	"nudge/agent/model/anthropic"
	"nudge/agent/model/modeltest"
	"nudge/agent/model/openai"
	"nudge/agent/tool/workspace"
	"nudge/memory"
)

// worksFor is a script of so many steps: one call in each but the last, which answers.
func worksFor(steps int) agenttest.Script {
	return func(req model.Request) model.Answer {
		if n := len(agenttest.Results(req)); n+1 < steps {
			return agenttest.Do(agenttest.Call(n, "write", `{"x":"words"}`))
		}
		return agenttest.Say("done")
	}
}

// threeSteps is an agent that works for three steps whenever something is said, with a model that takes no time, over a
// store whose commits are counted.
func threeSteps(t *testing.T, price agent.Money) (*agenttest.World, *counted) {
	t.Helper()
	d := &deeds{}
	w, _ := fresh(t, worksFor(3), d.tool("write", agent.Effectful, ""))
	store := &counted{Store: w.Config.Store}
	w.Config.Store, w.Outbox = store, w.Config.Store
	w.Config.Spec.PriceIn, w.Config.Spec.PriceOut = price, price
	w.Restart()
	return w, store
}

// What the harness adds to a turn of three steps, over a store that puts every commit on disk, and the time of as many
// bare commits beside it. Only the commits are asserted, since times are the machine's: the message, the three
// requests and the two calls before they are made, and the end. Requests that cost nothing need not be on disk before.
func overheadExperiment(t *testing.T) {
	const runs = 30
	out := table{{"the model", "a turn of three steps", "commits", "as many bare commits", "the rest"}}
	for _, c := range []struct {
		name    string
		price   agent.Money
		commits int // of a turn, when nothing is slow
	}{{"costs money", priceIn, 7}, {"is free", 0, 4}} {
		synctest.Test(t, func(t *testing.T) {
			w, store := threeSteps(t, c.price)
			w.Say("go")
			if settled := only(t, w.Rest(), agent.SettledMark); settled.Steps != 3 || store.commits.Load() > int64(c.commits) {
				t.Errorf("a model that %s: %d steps made %d commits, want at most %d", c.name, settled.Steps, store.commits.Load(), c.commits)
			}
			w.Kill()
		})

		w, store := threeSteps(t, c.price)
		var turns, bare []time.Duration
		for n := range runs {
			who := agent.Person{ID: agent.PersonID(fmt.Sprint("terminal:p", n)), Name: "p"}
			began := time.Now()
			message := agent.Message{Keys: []string{fmt.Sprint(n)}, Provenance: agent.Human, From: who, Address: who.ID.Home(), Text: "go"}
			if _, err := w.Pass(message); err != nil {
				t.Fatal(err)
			}
			if err := w.Agent.WaitIdle(context.Background(), nil); err != nil {
				t.Fatal(err)
			}
			turns = append(turns, time.Since(began))
		}
		commits := float64(store.commits.Load()) / runs
		for n := range runs {
			began := time.Now()
			for range c.commits {
				if err := store.Store.Update(context.Background(), func(tx memory.Tx) error {
					return tx.Table("row").Put(fmt.Sprint(n), []byte("one small row"))
				}); err != nil {
					t.Fatal(err)
				}
			}
			bare = append(bare, time.Since(began))
		}
		if settled := agenttest.Only(w.Rest(), agent.SettledMark); len(settled) != runs || settled[0].Steps != 3 {
			t.Errorf("%d of %d turns were settled", len(settled), runs)
		}
		whole, disk := median(turns), median(bare)
		out.row(c.name, inMS(whole), fmt.Sprintf("%.1f", commits), inMS(disk), inMS(whole-disk))
		w.Kill()
	}
	t.Logf("medians of %d runs\n%s", runs, &out)
}

func inMS(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d.Microseconds())/1000) }

// A turn takes as long as its model does: nothing waits for anything else.
func latencyExperiment(t *testing.T) {
	latencies := []time.Duration{0, 50 * time.Millisecond, 500 * time.Millisecond, 2 * time.Second}
	out := table{{"steps"}}
	for _, latency := range latencies {
		out[0] = append(out[0], "model of "+latency.String())
	}
	for _, steps := range []int{1, 3, 10} {
		cells := []any{steps}
		for _, latency := range latencies {
			synctest.Test(t, func(t *testing.T) {
				d := &deeds{}
				w, m := fresh(t, worksFor(steps), d.tool("write", agent.Effectful, ""))
				m.Latency = latency
				began := time.Now()
				w.Say("go")
				settled := only(t, w.Rest(), agent.SettledMark)
				took := time.Since(began)
				if took != time.Duration(steps)*latency || settled.Steps != steps {
					t.Errorf("%d steps with a model of %s took %s for %d", steps, latency, took, settled.Steps)
				}
				cells = append(cells, took)
				w.Kill()
			})
		}
		out.row(cells...)
	}
	t.Logf("in the time of the test\n%s", &out)
}

// carrier takes requests to a server without a network, so that the time of a test stays its own.
type carrier struct{ server http.Handler }

// RoundTrip has the server answer.
func (c carrier) RoundTrip(req *http.Request) (*http.Response, error) {
	answer := httptest.NewRecorder()
	c.server.ServeHTTP(answer, req)
	return answer.Result(), nil
}

// What is sent begins with the bytes of the request before, up to the end of its last message: from step to step, a
// minute later and across a restart. Marks for the provider's cache move on and are no part of what is cached.
func prefixExperiment(t *testing.T) {
	const history = 60 << 10
	reply := func(n int) modeltest.Reply {
		usage := model.Usage{In: 100, Out: 10, Known: true}
		if n%2 == 1 {
			return modeltest.Reply{Calls: []model.Call{{ID: fmt.Sprint("call_", n), Name: "look", Arguments: fmt.Sprintf(`{"x":"%d"}`, n)}}, Usage: usage}
		}
		return modeltest.Reply{Text: fmt.Sprintf("The answer to %d: %s", n, strings.Repeat("all is well. ", 40)), Usage: usage}
	}
	chat := modeltest.NewServer(t, func(n int, _ modeltest.ChatRequest) modeltest.Reply { return reply(n) })
	messages := modeltest.NewMessagesServer(t, func(n int, _ modeltest.MessagesRequest) modeltest.Reply { return reply(n) })
	out := table{{"wire", "history", "requests", "the same from step to step", "a minute later", "after a restart"}}
	for _, wire := range []struct {
		name   string
		model  func() (model.Model, error)
		bodies func() [][]byte
	}{
		{"Chat Completions", func() (model.Model, error) {
			return openai.New(openai.Config{BaseURL: chat.URL(), Model: "m", Stream: true, HTTP: &http.Client{Transport: carrier{chat}}})
		}, func() (bodies [][]byte) {
			for _, req := range chat.Requests() {
				bodies = append(bodies, req.Body)
			}
			return bodies
		}},
		{"Messages", func() (model.Model, error) {
			return anthropic.New(anthropic.Config{BaseURL: messages.URL(), Model: "m", Key: "k", Stream: true, HTTP: &http.Client{Transport: carrier{messages}}})
		}, func() (bodies [][]byte) {
			for _, req := range messages.Requests() {
				bodies = append(bodies, bytes.ReplaceAll(req.Body, []byte(`,"cache_control":{"type":"ephemeral"}`), nil))
			}
			return bodies
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			look := agenttest.Tool("look", agent.Read, "", func(_ context.Context, in agent.Invocation) (agent.Result, error) {
				return agent.Result{Text: strings.Repeat("seen <\"é\"> in "+string(in.Arguments)+"\n", 60)}, nil
			})
			w, _ := fresh(t, nil, look)
			var err error
			if w.Config.Model, err = wire.model(); err != nil {
				t.Fatal(err)
			}
			w.Restart()
			turn := func(text string) (first int) {
				first = len(wire.bodies())
				w.Say(text)
				if settled := only(t, w.Rest(), agent.SettledMark); settled.Reason != agent.Completed || settled.Steps != 2 {
					t.Fatalf("%s: settled %+v", wire.name, *settled.Totals)
				}
				return first
			}
			for n := 0; len(wire.bodies()) == 0 || len(wire.bodies()[len(wire.bodies())-1]) < history; n++ {
				turn(fmt.Sprintf("part %d: %s", n, strings.Repeat("please look & tell. ", 40)))
			}
			size := len(wire.bodies()[len(wire.bodies())-1])
			time.Sleep(time.Minute)
			later := turn("a minute later")
			time.Sleep(time.Minute)
			w.Restart()
			restarted := turn("after a restart")
			w.Kill()

			bodies := wire.bodies()
			least, at := 100.0, map[int]float64{}
			for i := 1; i < len(bodies); i++ {
				at[i] = samePrefix(bodies[i-1], bodies[i])
				least = min(least, at[i])
			}
			if least < 100 {
				t.Errorf("%s: some request has only %.2f %% of the one before at its beginning", wire.name, least)
			}
			percent := func(share float64) string { return fmt.Sprintf("%.2f %%", share) }
			out.row(wire.name, thousands(size)+" bytes", len(bodies), percent(least), percent(at[later]), percent(at[restarted]))
		})
	}
	t.Logf("\n%s", &out)
}

// samePrefix is how many percent of a request's bytes, up to the end of its last message, another begins with.
func samePrefix(before, after []byte) float64 {
	end := bytes.LastIndex(before, []byte(`],"max_tokens":`))
	if end <= 0 {
		return 0
	}
	same := 0
	for same < end && same < len(after) && before[same] == after[same] {
		same++
	}
	return 100 * float64(same) / float64(end)
}

// Six small tasks over three files, for a model of the reader's own choice behind any endpoint that speaks Chat
// Completions, a small local one included. It shows what such a model makes of them and asserts only that each turn ends.
func realModelExperiment(t *testing.T) {
	const needs, names, key = "NUDGE_TEST_BASE_URL", "NUDGE_TEST_MODEL", "NUDGE_TEST_KEY"
	if os.Getenv(needs) == "" {
		t.Skipf("set %s to the base_url of an endpoint that speaks Chat Completions, %s to a model's name and, if it wants one, %s to its key", needs, names, key)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(transport.CloseIdleConnections)
	client, err := openai.New(openai.Config{
		BaseURL: os.Getenv(needs), Model: os.Getenv(names), Key: os.Getenv(key), Stream: true, HTTP: &http.Client{Transport: transport},
	})
	if err != nil {
		t.Fatalf("ask the model that %s and %s name: %v", needs, names, err)
	}
	out := table{{"task", "ended", "steps", "tools", "tokens in", "out", "time", "answer"}}
	for _, task := range []string{
		"Which files are in the workspace?",
		"Who keeps the stores?",
		"How many cans of lamp oil are there, and what does one cost?",
		"What is all the rope in the stores worth?",
		"Who leads the workshop? Say so if the files do not tell.",
		"Write the names of the three people, one a line, into names.txt.",
	} {
		var tools []string
		dir := t.TempDir()
		for name, text := range map[string]string{
			"staff.txt":  "Mara Lind leads the harbour office.\nJonas Weber keeps the stores.\nPriya Nair writes the invoices.\n",
			"stores.txt": "rope: 14 coils\nlamp oil: 6 cans\nsailcloth: 3 rolls\n",
			"prices.txt": "rope: 20 EUR a coil\nlamp oil: 11 EUR a can\nsailcloth: 85 EUR a roll\n",
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		w := agenttest.Start(t, agent.Config{
			Store: open(t), Model: client, Tools: workspace.Tools(workspace.Config{Dirs: workspace.Dirs{Dir: dir, Shared: true}}),
			Spec:   agent.ModelSpec{Name: os.Getenv(names), Window: 32 << 10, MaxOutput: 1000},
			Limits: agent.Limits{Steps: 12, ToolCalls: 24, Errors: 3, Repeats: agent.DefaultRepeats, TurnTimeout: 90 * time.Second},
		})
		began := time.Now()
		w.Say(task)
		said := w.Rest()
		for len(agenttest.Only(said, agent.WaitingMark)) > 0 {
			for _, card := range agenttest.Only(said, agent.Approval) {
				w.Decide(card.ID, agent.Approve, "")
			}
			for _, question := range agenttest.Only(said, agent.Ask) {
				w.Decide(question.ID, agent.AnswerIt, "Do as you think best.")
			}
			said = w.Rest()
		}
		took := time.Since(began)
		err := w.Config.Store.View(context.Background(), func(tx memory.Tx) error {
			return agent.Events(tx, agenttest.Home, 0, func(e agent.Event) error {
				if e.Kind == "tool_call" {
					tools = append(tools, e.Tool)
				}
				return nil
			})
		})
		if err != nil {
			t.Fatalf("read the events of %q: %v", task, err)
		}
		settled := only(t, w.Said(), agent.SettledMark)
		answer := strings.Join(strings.Fields(finalOf(w.Said())), " ")
		if answer == "" {
			answer = agenttest.Lines(w.Said(agent.Notice))
		}
		out.row(task, settled.Reason, settled.Steps, strings.Join(tools, " "), thousands(settled.TokensIn), thousands(settled.TokensOut), took.Round(time.Millisecond), strings.TrimSpace(answer))
		w.Kill()
	}
	t.Logf("%s\n%s", os.Getenv(names), &out)
}
