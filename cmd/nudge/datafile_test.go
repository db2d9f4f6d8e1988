package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nudge/agent/model/modeltest"
	"nudge/memory"
	"nudge/memory/bolt"
)

func TestTheDataFileIsLookedAfterWhileItIsInUse(t *testing.T) {
	server := modeltest.NewServer(t, func(_ int, req modeltest.ChatRequest) modeltest.Reply {
		return modeltest.Reply{Text: "re: " + req.Last().Content}
	})
	p := newPlace(t, server, "")
	holder := p.chat()
	holder.say("one")
	holder.until("settled")
	if out, status := p.run("check"); status != 0 || !strings.Contains(out, "no problems: ") || !strings.Contains(out, " 1 session") {
		t.Errorf("check (status %d) printed:\n%s", status, out)
	}
	backup := filepath.Join(p.dir, "copy.db")
	asked := p.command("backup", "copy.db") // what it names is in its own working directory
	asked.Dir = p.dir
	if out, err := asked.CombinedOutput(); err != nil || !strings.Contains(string(out), backup+": ") {
		t.Errorf("backup printed:\n%s, error %v", out, err)
	}
	if info, err := os.Stat(backup); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the backup is %v, error %v", info, err)
	}
	if out, status := p.run("backup", backup); status != 1 || !strings.Contains(out, "--force") {
		t.Errorf("a second backup (status %d) printed:\n%s", status, out)
	}
	for _, command := range [][]string{{"restore", backup}, {"compact"}} {
		if out, status := p.run(command...); status != 1 || !strings.Contains(out, "in use by another process: pid ") || !strings.Contains(out, "stop it first") {
			t.Errorf("%v (status %d) printed:\n%s", command, status, out)
		}
	}
	holder.say("two")
	holder.until("settled")
	holder.end()
	if out, status := p.run("restore", backup); status != 0 {
		t.Fatalf("restore (status %d) printed:\n%s", status, out)
	}
	again := p.chat()
	again.say("three")
	if final := again.until("final"); final.Text != "re: three" {
		t.Errorf("after a restore %s", final.raw)
	}
	again.end()
	requests := server.Requests()
	said := ""
	for _, m := range requests[len(requests)-1].Messages {
		said += m.Content + "\n"
	}
	if !strings.Contains(said, "one") || strings.Contains(said, "two") {
		t.Errorf("after a restore the model reads:\n%s", said)
	}
}

func TestCheckTellsEachProblem(t *testing.T) {
	p := newPlace(t, nil, "")
	if err := os.MkdirAll(filepath.Join(p.dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	store, err := bolt.Open(filepath.Join(p.dir, "data", "nudge.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = store.Update(context.Background(), func(tx memory.Tx) error {
		for i := range mostProblems + 20 {
			if err := tx.Table("card").Put(strings.Repeat("c", i+1), []byte("nobody")); err != nil {
				return err
			}
		}
		return tx.Due().Put(memory.DueRow{Key: "heartbeat/none/UTC"})
	})
	if err := errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
	out, status := p.run("check")
	if status != 1 || !strings.Contains(out, `table card has a row for "cc", which was never asked; `) ||
		!strings.Contains(out, "and 21 more\n") || !strings.Contains(out, "nudge: 121 problems were found") {
		t.Errorf("check (status %d) printed:\n%s", status, out)
	}
	out, status = p.run("backup", filepath.Join(p.dir, "copy.db"))
	if status != 0 || !strings.Contains(out, "has 121 problems") {
		t.Errorf("backup (status %d) printed:\n%s", status, out)
	}
}
