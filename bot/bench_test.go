package bot_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"nudge/agent"
	"nudge/bot"
	"nudge/memory"
	"nudge/memory/bolt"
)

// mute is an adapter that says everything at once.
type mute struct{ doubt bot.Doubt }

func (mute) Platform() string           { return "chat" }
func (mute) Serves(string) bool         { return true }
func (m mute) Abilities() bot.Abilities { return bot.Abilities{Doubt: m.doubt} }

func (mute) Listen(ctx context.Context, _ bot.Receiver) error {
	<-ctx.Done()
	return nil
}

func (mute) Say(context.Context, bot.Delivery) (string, error) { return "", nil }

// BenchmarkDelivery takes replies from the outbox to the platform, in so many conversations at once. Where sends can be
// in doubt, each costs a write more.
func BenchmarkDelivery(b *testing.B) {
	for name, doubt := range map[string]bot.Doubt{"no doubt": bot.NoDoubt, "finds out": bot.FindsOut} {
		for _, conversations := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/%d", name, conversations), func(b *testing.B) {
				store, err := bolt.Open(filepath.Join(b.TempDir(), "nudge.db"), bolt.Options{})
				if err != nil {
					b.Fatal(err)
				}
				defer store.Close()
				hub := bot.NewHub(bot.Config{Store: store})
				ctx, stop := context.WithCancel(context.Background())
				served := make(chan error, 1)
				go func() { served <- hub.Serve(ctx, nil, mute{doubt}) }()
				b.ResetTimer()
				for said := 0; said < b.N; said += conversations {
					err := store.Update(ctx, func(tx memory.Tx) error {
						for i := range conversations {
							if err := agent.Send(tx, agent.Reply{Kind: agent.Final, Text: "x", Address: fmt.Sprint("chat:", i)}); err != nil {
								return err
							}
						}
						return nil
					})
					if err != nil {
						b.Fatal(err)
					}
					hub.Outgoing()
					if err := hub.Drain(ctx, nil); err != nil {
						b.Fatal(err)
					}
				}
				b.StopTimer()
				stop()
				if err := <-served; err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}
