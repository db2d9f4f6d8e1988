package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"nudge/agent"
	"nudge/memory"
)

func (a *app) auditCommand() *cobra.Command {
	format := "json"
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Print who decided what, when, and what they saw",
		Long: "Print who approved, edited, denied, answered, linked, forgot and let in whom, when, and what they saw: one line of JSON each, oldest first,\n" +
			"or for reading. Of sessions that were erased and people who were forgotten there are no words.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.printFound(cmd.Context(), []string{"audit", "--format", format}, func(tx memory.Tx, out *bytes.Buffer) error {
				lines, err := agent.Audit(tx)
				if err != nil {
					return err
				}
				return writeAudit(out, lines, format == "text")
			})
		},
	}
	formatFlags(cmd, &format, "json or text")
	return cmd
}

func writeAudit(out io.Writer, lines []agent.AuditLine, asText bool) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for _, line := range lines {
		err := error(nil)
		if asText {
			_, err = fmt.Fprintln(out, auditText(line))
		} else {
			err = encoder.Encode(line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// auditText is a line of the audit for reading.
func auditText(l agent.AuditLine) string {
	parts := []string{l.At.Local().Format(time.DateTime), l.Did}
	for _, part := range []struct{ before, what string }{
		{"", l.Tool}, {"", string(l.Shown)}, {"edited to ", string(l.Edited)}, {"from then on with ", agent.OpenText(l.Open)}, {"with ", string(l.Left)}, {"", l.About}, {"and ", l.With}, {"by ", string(l.By)}, {"for ", string(l.Asked)},
		{"card ", l.Card}, {"rule ", l.Rule},
	} {
		if part.what != "" {
			parts = append(parts, part.before+part.what)
		}
	}
	line := strings.Join(parts, "  ")
	if l.Text != "" {
		line += ": " + strings.Join(strings.Fields(l.Text), " ")
	}
	return line
}
