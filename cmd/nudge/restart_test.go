package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model"
	"nudge/agent/model/modeltest"
	"nudge/memory"
	"nudge/memory/bolt"
)

// TestRestartTime measures how long it takes from a start after kill -9 in the middle of a tool to the next request to the
// model, in a short and in a long session. It asserts nothing about speed; NUDGE_MEASURE, the path of the built program, runs it.
func TestRestartTime(t *testing.T) {
	program := os.Getenv("NUDGE_MEASURE")
	if program == "" {
		t.Skip("set NUDGE_MEASURE to the path of the built program to measure it")
	}
	times := map[int]time.Duration{}
	for _, messages := range []int{100, 10_000} {
		server := modeltest.NewServer(t, func(n int, req modeltest.ChatRequest) modeltest.Reply {
			if req.Last().Role == "tool" {
				return modeltest.Reply{Text: "done", Usage: usage}
			}
			return modeltest.Reply{Usage: usage, Calls: []model.Call{call(fmt.Sprint("c", n), "run_command", `{"name":"until-go"}`)}}
		})
		p := newPlace(t, server, slowCommands)
		if err := os.Symlink(program, filepath.Join(p.dir, "nudge")); err != nil { // not the one with all of the tests in it
			t.Fatal(err)
		}
		talkInto(t, filepath.Join(p.dir, "data"), messages)
		var took []time.Duration
		for n := range 7 {
			k := p.chat()
			k.say("go")
			p.begun(2*n + 1)
			k.kill()
			if err := os.WriteFile(p.workspace("go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			before := len(server.Requests())
			began := time.Now()
			again := p.chat()
			for len(server.Requests()) == before {
				time.Sleep(100 * time.Microsecond)
			}
			took = append(took, time.Since(began))
			again.until("settled")
			again.end()
			if err := os.Remove(p.workspace("go")); err != nil {
				t.Fatal(err)
			}
		}
		slices.Sort(took)
		times[messages] = took[len(took)/2]
		t.Logf("restart after %d messages: %.1f ms", messages, float64(times[messages].Microseconds())/1000)
	}
	t.Logf("restart ratio: %.2f", float64(times[10_000])/float64(times[100]))
}

// talkInto fills a data directory with a session of Ann's.
func talkInto(t *testing.T, dir string, messages int) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	store, err := bolt.Open(filepath.Join(dir, "nudge.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := &agenttest.Model{T: t, Script: func(model.Request) model.Answer {
		return agenttest.Say("That is noted, and here are some more words of an answer of the usual length.")
	}}
	ag, err := agent.New(agent.Config{Store: store, Model: silent{m}, Spec: agent.ModelSpec{Name: "m", Window: 32768, MaxOutput: 4096}})
	if err != nil {
		t.Fatal(err)
	}
	who := agent.Person{ID: "terminal:ann", Name: "ann", Zone: "UTC"}
	for n := range messages {
		_, err := ag.Receive(t.Context(), agent.Message{
			Keys: []string{fmt.Sprint(n)}, ID: fmt.Sprint(n), Session: who.ID.Home(), Address: who.ID.Home(), Provenance: agent.Human, From: who,
			At: time.Now(), Text: fmt.Sprintf("message %d, %s", n, strings.Repeat("with a few words ", 4)),
		})
		if err == nil {
			err = ag.WaitIdle(t.Context(), nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ag.Close(context.Background())
	err = store.Update(t.Context(), func(tx memory.Tx) error { // said already
		var ids []uint64
		if err := tx.Outbox().List(0, func(p memory.Parcel) error { ids = append(ids, p.ID); return nil }); err != nil {
			return err
		}
		return tx.Outbox().Remove(ids...)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// silent is a model that keeps no requests.
type silent struct{ *agenttest.Model }

// Answer follows the script.
func (m silent) Answer(_ context.Context, req model.Request, _ func(string)) (model.Answer, error) {
	answer := m.Script(req)
	answer.Usage = model.Usage{In: 100, Out: 20, Known: true}
	return answer, nil
}
