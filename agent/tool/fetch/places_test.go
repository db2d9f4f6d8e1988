package fetch

import (
	"context"
	"encoding/json"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"nudge/agent"
)

// However many pages one answer asks for, few are read at once, and another person's are read beside them.
func TestFewPagesAreReadAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var reading atomic.Int32
		tool, err := New(Config{
			Lookup: func(context.Context, string) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr("93.184.215.14")}, nil
			},
			Dial: func(context.Context, netip.AddrPort) (net.Conn, error) {
				reading.Add(1)
				defer reading.Add(-1)
				<-ctx.Done() // the transport's own may last longer
				return nil, ctx.Err()
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		var calls sync.WaitGroup
		ask := func(person agent.PersonID) {
			calls.Go(func() {
				if _, err := tool.Run(ctx, agent.Invocation{Person: agent.Person{ID: person}, Arguments: json.RawMessage(`{"url":"https://x.test/"}`)}); err == nil {
					t.Error("a page of no server was read")
				}
			})
		}
		for range 50 {
			ask("api:ann")
		}
		if synctest.Wait(); reading.Load() != mostOwn {
			t.Errorf("%d pages of one person's are read at once", reading.Load())
		}
		for _, person := range []agent.PersonID{"api:bob", "api:eve", "api:tim", "api:zoe"} {
			for range mostOwn {
				ask(person)
			}
		}
		if synctest.Wait(); reading.Load() != mostAtOnce {
			t.Errorf("%d pages of all people's are read at once", reading.Load())
		}
		stop()
		calls.Wait()
	})
}
