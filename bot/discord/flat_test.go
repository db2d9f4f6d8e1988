package discord

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"nudge/bot"
	"nudge/bot/bottest/discordtest"
)

// well is a network on which every call succeeds.
type well struct{}

func (well) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	return answered(http.StatusOK, `{"id":"1"}`), nil
}

// oblivious is a receiver that keeps nothing.
type oblivious struct{ ear }

func (*oblivious) Receive(context.Context, bot.Event) (bot.Admission, error) { return bot.Taken, nil }

// TestInteractionsLeaveNothing presses buttons, sends forms, and types and gives commands, each with ids of its own, and looks how
// much is held after that. NUDGE_LOAD=1 makes them 100,000.
func TestInteractionsLeaveNothing(t *testing.T) {
	many := 1000
	if os.Getenv("NUDGE_LOAD") != "" {
		many = 100_000
	}
	d, err := New(Config{Token: "token", Timing: brisk})
	if err != nil {
		t.Fatal(err)
	}
	if d.api, err = newAPI("token", newLimiter(&url.URL{Scheme: "https", Host: "d", Path: "/api"}, time.Minute, well{})); err != nil {
		t.Fatal(err)
	}
	d.self = self{discordtest.Bot, discordtest.App}
	in := &oblivious{}
	ctx := context.Background()
	n := 0
	press := func(times int) {
		for range times {
			n++
			d.hear(ctx, in, dispatch{"INTERACTION_CREATE", interactionNumber(n)})
			if n%100 == 0 {
				d.lanes.Wait()
			}
		}
		d.lanes.Wait()
	}
	held := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	press(5100) // what is remembered of late is full then
	before := held()
	began := time.Now()
	press(many)
	took, grown := time.Since(began), int64(held())-int64(before)
	t.Logf("%d interactions took %s and left %d KB", many, took, grown>>10)
	if grown > 1<<20 {
		t.Errorf("%d interactions left %d KB", many, grown>>10)
	}
}

// interactionNumber is the nth of many interactions of all kinds, by other people in other places each time.
func interactionNumber(n int) json.RawMessage {
	id := func(kind int) string { return fmt.Sprint(kind*1_000_000_000 + n) }
	data := []string{
		fmt.Sprintf(`"type":3,"data":{"custom_id":%q}`, customID(actionApprove, id(1))),
		fmt.Sprintf(`"type":3,"data":{"custom_id":%q}`, customID(actionDeny, id(1))),
		fmt.Sprintf(`"type":5,"data":{"custom_id":%q,"components":[{"type":18,"component":{"type":4,"custom_id":"words","value":%q}}]}`, customID(actionEdit, id(1)), strings.Repeat("x", 500)),
		`"type":2,"data":{"name":"nudge","type":1,"options":[{"name":"words","value":"status"}]}`,
		`"type":4,"data":{"name":"nudge","type":1,"options":[{"name":"words","value":"st"}]}`,
		fmt.Sprintf(`"type":2,"data":{"name":"a","type":3,"target_id":%[1]q,"resolved":{"messages":{%[1]q:{"content":"words"}}}}`, id(2)),
	}[n%6]
	return json.RawMessage(fmt.Sprintf(`{"id":%q,"application_id":"998","token":%q,"guild_id":"800","channel_id":%q,"channel":{"id":%[3]q,"type":0},
		"member":{"user":{"id":%q,"global_name":"Somebody"}},"message":{"id":%q},%s}`, id(3), "token"+id(3), id(4), id(5), id(6), data))
}
