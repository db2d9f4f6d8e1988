package discord

import (
	"context"
	"io"
	"strings"
	"testing"

	"nudge/agent"
	"nudge/bot/bottest/discordtest"
)

// TestFilesThatCannotBeRead has files that are too large, gone, or kept elsewhere. What is said of them names no address.
func TestFilesThatCannotBeRead(t *testing.T) {
	h := listen(t, discordtest.Options{}, brisk).begin()
	message, _ := h.server.Attach(ann, discordtest.DM(ann), "", discordtest.File{Name: "a.txt", Content: "0123456789"})
	h.hears("")
	file := h.ear.last().Files[0]
	for name, c := range map[string]struct {
		file  string
		limit int64
		want  string
	}{
		"whole":     {file.ID, 10, ""},
		"too large": {file.ID, 9, "at most"},
		"deleted":   {strings.Replace(file.ID, message, "5", 1), 10, "was deleted"},
		"no file":   {file.ID + "5", 10, "it was deleted"},
		"a path":    {"../x-1-2", 10, "no file of discord's"},
	} {
		t.Run(name, func(t *testing.T) {
			body, err := h.discord.Fetch(context.Background(), agent.File{ID: c.file}, c.limit)
			if err == nil {
				defer func() { _ = body.Close() }()
				var text []byte
				if text, err = io.ReadAll(body); err == nil && string(text) != "0123456789" {
					t.Errorf("the file is %q", text)
				}
			}
			if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "http")) {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
		})
	}
	if _, err := h.discord.get(context.Background(), "https://evil.example/x", 10); err == nil || !strings.Contains(err.Error(), "unknown place") {
		t.Errorf("of another host: %v", err)
	}
}
