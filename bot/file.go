package bot

import (
	"context"
	"errors"
	"fmt"
	"io"

	"nudge/agent"
)

// Fetch gets a file that was attached in a conversation, from the adapter that serves it. Turns that a start takes up may
// ask before the adapters are there, so it waits for Serve.
func (h *Hub) Fetch(ctx context.Context, address string, file agent.File, limit int64) (io.ReadCloser, error) {
	select {
	case <-h.began:
	case <-h.ending:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if filer := h.filer(address); filer != nil {
		return filer.Fetch(ctx, file, limit)
	}
	return nil, errors.New("nothing that runs here can get files of the conversation in which it was attached")
}

// filer is an adapter that serves a conversation and can get its files; nil when there is none.
func (h *Hub) filer(address string) Filer {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, adapter := range h.adapters {
		if filer, ok := adapter.(Filer); ok && adapter.Serves(address) {
			return filer
		}
	}
	return nil
}

// TooLarge is the error of a [Filer] for a file with more bytes than are wanted.
func TooLarge(size, limit int64) error {
	return fmt.Errorf("it has %d bytes, and at most %d MiB are read; a part of it can be pasted or uploaded", size, limit>>20)
}
