package secret

import (
	"context"
	"fmt"
	"io"
	"log/slog"
)

// Handler passes log records on to another handler, without the secrets in their messages and values.
func (r *Redactor) Handler(to slog.Handler) slog.Handler { return handler{r, to} }

type handler struct {
	redactor *Redactor
	slog.Handler
}

func (h handler) Handle(ctx context.Context, record slog.Record) error {
	clean := slog.NewRecord(record.Time, record.Level, h.redactor.Text(record.Message), record.PC)
	record.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(h.redactor.attr(a))
		return true
	})
	return h.Handler.Handle(ctx, clean)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = h.redactor.attr(a)
	}
	return handler{h.redactor, h.Handler.WithAttrs(clean)}
}

func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.redactor, h.Handler.WithGroup(name)}
}

func (r *Redactor) attr(a slog.Attr) slog.Attr {
	a.Value = a.Value.Resolve()
	switch a.Value.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(r.Text(a.Value.String()))
	case slog.KindGroup:
		var group []slog.Attr
		for _, inner := range a.Value.Group() {
			group = append(group, r.attr(inner))
		}
		a.Value = slog.GroupValue(group...)
	case slog.KindAny:
		a.Value = r.value(a.Value)
	}
	return a
}

// value is a value of any type, as text where there is a secret in it.
func (r *Redactor) value(v slog.Value) slog.Value {
	text := fmt.Sprintf("%+v", v.Any())
	if raw, ok := v.Any().([]byte); ok {
		text = string(raw)
	}
	if hidden := r.Text(text); hidden != text {
		return slog.StringValue(hidden)
	}
	return v
}

// Writer passes on what is written, without the secrets in it. Each write is looked at alone, so one that is a JSON
// document stays one, and a secret that is cut in two between writes is not found.
func (r *Redactor) Writer(to io.Writer) io.Writer { return writer{r, to} }

type writer struct {
	redactor *Redactor
	to       io.Writer
}

func (w writer) Write(p []byte) (int, error) {
	if _, err := w.to.Write(w.redactor.JSON(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}
