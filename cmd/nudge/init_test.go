package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"nudge/cmd/nudge/config"
)

// TestInitKeepsTheCommandsThatThereAre compares what is written for Enter alone with what there is without a config.
func TestInitKeepsTheCommandsThatThereAre(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.toml")
	var said strings.Builder
	if status := (&app{in: strings.NewReader("\n\n\n"), out: &said, errs: &said}).run(context.Background(), []string{"init", "--config", path}); status != 0 {
		t.Fatalf("init (status %d) printed:\n%s", status, said.String())
	}
	got, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	want := config.Default()
	want.File = path
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the config is %+v, want %+v", got, want)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, error %v", info.Mode(), err)
	}
}

// TestInitEndsWhenItIsToldTo ends while nobody answers.
func TestInitEndsWhenItIsToldTo(t *testing.T) {
	in, typed := io.Pipe()
	defer typed.Close() // as a terminal never does
	path := filepath.Join(t.TempDir(), "config.toml")
	ctx, interrupt := context.WithCancel(t.Context())
	var said strings.Builder
	ended := make(chan int)
	go func() {
		ended <- (&app{in: in, out: &said, errs: &said}).run(ctx, []string{"init", "--config", path})
	}()
	if _, err := typed.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	interrupt()
	if status := <-ended; status != exitFailed {
		t.Errorf("the status is %d, want 1", status)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("half a config is written")
	}
}
