package bot_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nudge/agent"
	"nudge/bot"
)

// filer is a fake adapter that has files.
type filer struct{ *fake }

func (f filer) Fetch(_ context.Context, file agent.File, _ int64) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(file.ID + " of " + f.platform)), nil
}

func filerAt(platform, home string) filer {
	f := newFake()
	f.platform, f.home = platform, home
	return filer{f}
}

func TestFilesAreGotFromTheirAdapter(t *testing.T) {
	plain := newFake()
	plain.home = "none:local:dm:ann"
	s := serve(t, openStore(t), bot.Config{}, plain, filerAt("one", "one:local:dm:ann"), filerAt("two", "two:local:dm:ann"))
	body, err := s.hub.Fetch(t.Context(), "two:local:dm:ann", agent.File{ID: "F1"}, 100)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := io.ReadAll(body); string(got) != "F1 of two" {
		t.Errorf("got %q", got)
	}
	for _, address := range []string{"none:local:dm:ann", "three:local:dm:ann"} {
		if _, err := s.hub.Fetch(t.Context(), address, agent.File{ID: "F1"}, 100); err == nil {
			t.Errorf("something was got of %s", address)
		}
	}
}

// TestFilesWaitForTheAdapters lets a turn that a start takes up ask before the adapters are there.
func TestFilesWaitForTheAdapters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := bot.NewHub(bot.Config{Store: openStore(t)})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := hub.Fetch(ctx, "one:local:dm:ann", agent.File{ID: "F1"}, 100); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("where nothing serves: %v", err)
		}
		got := make(chan error)
		go func() {
			_, err := hub.Fetch(t.Context(), "one:local:dm:ann", agent.File{ID: "F1"}, 100)
			got <- err
		}()
		synctest.Wait()
		serving, stop := context.WithCancel(t.Context())
		served := make(chan error)
		go func() { served <- hub.Serve(serving, nil, filerAt("one", "one:local:dm:ann")) }()
		if err := <-got; err != nil {
			t.Errorf("once it serves: %v", err)
		}
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// TestFilesWithoutWords begin a turn; those that come with a command do not.
func TestFilesWithoutWords(t *testing.T) {
	f := newFake()
	s := serve(t, openStore(t), bot.Config{Allow: []string{"chat:*"}}, f)
	e := s.event(" ")
	e.Files = []agent.File{{ID: "F1", Name: "a.txt"}}
	if got := s.receive(e); got != bot.Taken || !strings.Contains(f.texts(annHome), `echo [attached: "a.txt"`) {
		t.Errorf("admission %d, said %q", got, f.texts(annHome))
	}
	e = s.event("/usage")
	e.Files = []agent.File{{ID: "F2", Name: "b.txt"}}
	if s.receive(e); len(s.model.Requests()) != 1 {
		t.Errorf("a command with a file made %d requests", len(s.model.Requests()))
	}
}
