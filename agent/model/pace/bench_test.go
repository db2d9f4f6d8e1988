package pace

import (
	"context"
	"testing"

	"nudge/agent/model"
)

// BenchmarkHealthy compares asking a provider that answers at once with asking it through a Model that sets no bound:
// by one caller, and by a thousand at the same time.
func BenchmarkHealthy(b *testing.B) {
	bare := provider(func(context.Context, model.Request, func(string)) (model.Answer, error) { return model.Answer{}, nil })
	for _, c := range []struct {
		name string
		m    model.Model
	}{{"bare", bare}, {"paced", New(bare, Config{})}} {
		b.Run(c.name+"/1", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = c.m.Answer(b.Context(), model.Request{}, nil)
			}
		})
		b.Run(c.name+"/1000", func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(1000)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					_, _ = c.m.Answer(b.Context(), model.Request{}, nil)
				}
			})
		})
	}
}
