package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"nudge/agent"
	"nudge/bot"
	"nudge/memory"
	"nudge/memory/diary"
	"nudge/schedule"
)

// personDocument is what `nudge export` prints of a person. Names of fields stay as they are.
type personDocument struct {
	Exported time.Time `json:"exported"`
	agent.PersonExport
	Diary       []diary.Note     `json:"diary,omitempty"`       // the newest first
	Heartbeats  []ownHeartbeat   `json:"heartbeats"`            // that wake the person, or that they made
	Snoozed     time.Time        `json:"snoozed,omitzero"`      // they are not spoken to unasked before it
	Told        []ownTold        `json:"told,omitempty"`        // by heartbeats in the last 90 days, oldest first
	Withheld    []ownWithheld    `json:"withheld,omitempty"`    // what the next digest tells
	Undelivered []bot.DeadLetter `json:"undelivered,omitempty"` // said to them and given up, newest first
}

// ownHeartbeat is a heartbeat as one of its people may see it: others whom it wakes are not in it, nor what the operator
// has it check.
type ownHeartbeat struct {
	Name      string         `json:"name"`
	Cron      string         `json:"cron"`
	Zone      string         `json:"zone,omitempty"` // IANA name; "" means the person's own
	Prompt    string         `json:"prompt"`
	Tools     []string       `json:"tools,omitempty"`
	Until     time.Time      `json:"until,omitzero"`
	Kind      string         `json:"condition_kind"`
	Condition *schedule.Spec `json:"condition,omitempty"` // of one that the person made
	Made      bool           `json:"made_by_you,omitempty"`
	Wakes     bool           `json:"wakes_you,omitempty"`
	Paused    string         `json:"paused,omitempty"` // why
	Ended     string         `json:"ended,omitempty"`  // why
	// What they said of it: Snoozed like that of the document, how often it was useful, and how long at least it lets them be
	// since they asked for less.
	Snoozed time.Time `json:"snoozed,omitzero"`
	Useful  int       `json:"useful,omitempty"`
	Less    string    `json:"at_most,omitempty"`
}

// ownTold is what a heartbeat told the person, and what they said of it.
type ownTold struct {
	Heartbeat string            `json:"heartbeat"`
	At        time.Time         `json:"at"`
	Text      string            `json:"text"`
	Said      schedule.Feedback `json:"said,omitempty"`
	SaidAt    time.Time         `json:"said_at,omitzero"`
	Until     time.Time         `json:"until,omitzero"` // of a snooze
	Answer    string            `json:"answer,omitempty"`
}

// ownWithheld is something that was held back from the person and that their next digest tells.
type ownWithheld struct {
	Heartbeat string          `json:"heartbeat,omitempty"`
	Text      string          `json:"text,omitempty"`
	First     time.Time       `json:"first"`
	Last      time.Time       `json:"last"`
	Times     int             `json:"times"`
	Reason    schedule.Reason `json:"reason"`
}

func (a *app) exportCommand() *cobra.Command {
	format := "json"
	cmd := &cobra.Command{
		Use:   "export USER",
		Short: "Print all that is kept of a person",
		Long: "Print all that is kept of a person, as one JSON document or for reading: who they are, their sessions, what they said in shared\n" +
			"conversations, their cards, decisions, heartbeats and money, and what is remembered of them. USER is an id such as slack:T1:U1; a name alone is one at a terminal.",
		Args: one,
		RunE: func(cmd *cobra.Command, args []string) error {
			person := personNamed(args[0])
			return a.printExport(cmd.Context(), []string{"export", "--format", format, string(person)}, func(tx memory.Tx) (data any, text func() string, err error) {
				doc, err := exportPerson(tx, person)
				return doc, doc.markdown, err
			}, format)
		},
	}
	formatFlags(cmd, &format, "json or text")
	return cmd
}

func (a *app) exportSessionCommand() *cobra.Command {
	format := "json"
	cmd := &cobra.Command{
		Use:   "export SESSION",
		Short: "Print all that is kept of a session",
		Args:  one,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.printExport(cmd.Context(), []string{"sessions", "export", "--format", format, args[0]}, func(tx memory.Tx) (data any, text func() string, err error) {
				session, err := agent.ExportSession(tx, args[0])
				return session, func() string { return session.Markdown(time.Local) }, unknownSession(err)
			}, format)
		},
	}
	formatFlags(cmd, &format, "json or text")
	return cmd
}

// unknownSession says what to do about the name of a session that is not there.
func unknownSession(err error) error {
	if errors.Is(err, agent.ErrUnknownSession) {
		return fmt.Errorf("%w; `nudge sessions` lists those that there are", err)
	}
	return err
}

// printExport prints what is found in the data file as one document, without the secrets of the config.
func (a *app) printExport(ctx context.Context, args []string, find func(memory.Tx) (data any, text func() string, err error), format string) error {
	return a.printFound(ctx, args, func(tx memory.Tx, out *bytes.Buffer) error {
		data, text, err := find(tx)
		if err != nil {
			return err
		}
		if format == "text" {
			_, err = fmt.Fprintln(out, strings.TrimRight(text(), "\n"))
			return err
		}
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(data)
	})
}

// printFound prints what write makes of the data file, without the secrets of the config.
func (a *app) printFound(ctx context.Context, args []string, write func(tx memory.Tx, out *bytes.Buffer) error) error {
	var out bytes.Buffer
	err := a.look(ctx, args, func(tx memory.Tx) error {
		out.Reset()
		token, _, err := tx.Table("setting").Get("web.token")
		if err != nil {
			return err
		}
		a.redactor().Add(string(token))
		return write(tx, &out)
	})
	if err != nil {
		return err
	}
	_, err = a.shown().Write(out.Bytes())
	return failed(err)
}

// exportPerson gathers what all rooms keep of a person.
func exportPerson(tx memory.Tx, person agent.PersonID) (personDocument, error) {
	own := of(person)
	kept, err := agent.ExportPerson(tx, person, own)
	if err != nil {
		return personDocument{}, err
	}
	doc := personDocument{Exported: time.Now().UTC(), PersonExport: kept, Heartbeats: []ownHeartbeat{}}
	attention, err := exportTold(tx, person, &doc)
	if err != nil {
		return personDocument{}, err
	}
	if doc.Diary, err = notesOf(tx, person); err != nil {
		return personDocument{}, err
	}
	beats, err := schedule.List(tx)
	if err != nil {
		return personDocument{}, err
	}
	for _, b := range beats {
		beat := ownHeartbeat{
			Name: b.Name, Cron: b.Cron, Zone: b.Zone, Prompt: b.About(), Tools: b.Tools, Until: b.Until, Kind: b.Condition.Kind,
			Made: b.By == string(person), Wakes: slices.Contains(b.For, string(person)), Paused: b.Paused, Ended: b.Ended,
		}
		if beat.Made {
			beat.Condition = &b.Condition
		}
		if taste := attention.Tastes[b.Name]; taste != nil {
			beat.Snoozed, beat.Useful = taste.Snoozed, taste.Useful
			if cooldown := taste.Cooldown(); cooldown > 0 {
				beat.Less = schedule.Every(cooldown)
			}
		}
		if beat.Made || beat.Wakes {
			doc.Heartbeats = append(doc.Heartbeats, beat)
		}
	}
	total, _, err := bot.DeadLetters(tx, 0)
	if err != nil {
		return personDocument{}, err
	}
	_, letters, err := bot.DeadLetters(tx, total)
	if err != nil {
		return personDocument{}, err
	}
	for _, l := range letters {
		if own(l.Conversation) {
			doc.Undelivered = append(doc.Undelivered, l)
		}
	}
	if kept.Empty() && len(doc.Diary)+len(doc.Heartbeats)+len(doc.Undelivered)+len(doc.Told)+len(doc.Withheld) == 0 && doc.Snoozed.IsZero() {
		return personDocument{}, fmt.Errorf("nothing is kept of %s; an id is such as terminal:ann or slack:T1:U1, and `nudge sessions` shows those of whom there is something", person)
	}
	return doc, nil
}

// exportTold adds what heartbeats told a person and what they said of that.
func exportTold(tx memory.Tx, person agent.PersonID, doc *personDocument) (schedule.Attention, error) {
	attention, err := schedule.LoadAttention(tx, string(person))
	if err != nil {
		return attention, err
	}
	doc.Snoozed = attention.Snoozed
	for _, w := range attention.Withheld {
		doc.Withheld = append(doc.Withheld, ownWithheld{Heartbeat: w.Heartbeat, Text: w.Text, First: w.First, Last: w.Last, Times: w.Count, Reason: w.By})
	}
	cards, err := schedule.Cards(tx, func(c schedule.Card) bool { return c.Person == string(person) })
	for _, c := range cards {
		doc.Told = append(doc.Told, ownTold{
			Heartbeat: c.Heartbeat, At: c.Told, Text: c.Text, Said: c.Said, SaidAt: c.SaidAt, Until: c.Until, Answer: c.Answer,
		})
	}
	return attention, err
}

// markdown is the document for reading, in the person's time.
func (d personDocument) markdown() string {
	zone, err := time.LoadLocation(d.Zone)
	if err != nil {
		zone = time.UTC
	}
	var b strings.Builder
	b.WriteString(d.PersonExport.Markdown(zone))
	writeDiary(&b, d.Diary, zone)
	if len(d.Heartbeats) > 0 {
		b.WriteString("\n## Heartbeats\n")
	}
	for _, h := range d.Heartbeats {
		fmt.Fprintf(&b, "\n**%s**, %s, on %s", h.Name, h.Cron, h.Kind)
		for _, why := range [][2]string{{"paused", h.Paused}, {"ended", h.Ended}} {
			if why[1] != "" {
				fmt.Fprintf(&b, " (%s: %s)", why[0], why[1])
			}
		}
		if h.Less != "" {
			fmt.Fprintf(&b, " (you asked for less: at most %s)", h.Less)
		}
		fmt.Fprintf(&b, "\n> %s\n", strings.ReplaceAll(h.Prompt, "\n", "\n> "))
	}
	if len(d.Told) > 0 {
		b.WriteString("\n## Told to you unasked\n")
	}
	for _, t := range d.Told {
		fmt.Fprintf(&b, "\n**%s**, %s\n> %s\n", t.Heartbeat, t.At.In(zone).Format("2006-01-02 15:04"), strings.ReplaceAll(t.Text, "\n", "\n> "))
		if t.Said != "" {
			fmt.Fprintf(&b, "\nYou said, %s: %s. %s\n", t.SaidAt.In(zone).Format("2006-01-02 15:04"), t.Said, t.Answer)
		}
	}
	if len(d.Withheld) > 0 {
		b.WriteString("\n## Held back, for the next digest\n")
	}
	for _, w := range d.Withheld {
		fmt.Fprintf(&b, "\n**%s**, %s (%s)\n> %s\n", w.Heartbeat, w.First.In(zone).Format("2006-01-02 15:04"), w.Reason, strings.ReplaceAll(w.Text, "\n", "\n> "))
	}
	if !d.Snoozed.IsZero() {
		fmt.Fprintf(&b, "\nSnoozed until %s.\n", d.Snoozed.In(zone).Format("2006-01-02 15:04"))
	}
	if len(d.Undelivered) > 0 {
		b.WriteString("\n## Said to you and not delivered\n")
	}
	for _, l := range d.Undelivered {
		fmt.Fprintf(&b, "\n**%s**, %s: %s\n> %s\n", l.Kind, l.At.In(zone).Format("2006-01-02 15:04"), l.Reason, strings.ReplaceAll(l.Text, "\n", "\n> "))
	}
	return b.String()
}

func (a *app) eraseSessionCommand() *cobra.Command {
	yes := false
	cmd := &cobra.Command{
		Use:   "erase SESSION",
		Short: "Remove a session with all that is kept of it",
		Long: "Remove a session with all that is kept of it; what runs in it is stopped first. `nudge sessions` lists the names. When the\n" +
			"command ends, no byte of it is left in the data file.\n" +
			"Backups and what stands on the platforms are not touched.",
		Args: one,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !yes && !a.canAsk() {
				return errors.New("nobody can be asked here whether to erase; --yes erases without asking")
			}
			return a.eraseSession(cmd.Context(), args[0], yes)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// canAsk reports whether somebody sits at both ends.
func (a *app) canAsk() bool { return a.isTerminal(a.in) && a.isTerminal(a.out) }

// eraseSession removes a session from the program that runs here, through the process that holds the data file, or by
// holding it.
func (a *app) eraseSession(ctx context.Context, session string, yes bool) error {
	if a.host != nil {
		return failed(a.eraseRunning(ctx, a.host, session, yes))
	}
	path, _, err := a.dataFilePath()
	if err != nil {
		return err
	}
	store, err := openStore(filepath.Dir(path), a.log())
	var locked *memory.LockedError
	if errors.As(err, &locked) {
		return a.overSocket(ctx, filepath.Dir(path), locked, []string{"sessions", "erase", fmt.Sprintf("--yes=%t", yes), session})
	}
	if err != nil {
		return failed(err)
	}
	err = a.eraseResting(ctx, store, session, yes)
	if err == nil {
		err = a.wipeErased(ctx, store)
	}
	return failed(errors.Join(err, store.Close()))
}

func (a *app) eraseRunning(ctx context.Context, p *program, session string, yes bool) error {
	if err := a.confirmErasure(ctx, p.store, session, yes); err != nil {
		return err
	}
	removed, err := bot.Erase(ctx, p.agent, session)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(a.out, "erased %s: %s\n", session, removed); err != nil {
		return err
	}
	return a.wipeErased(ctx, p.store)
}

// wipeErased wipes what was erased, and says so.
func (a *app) wipeErased(ctx context.Context, store memory.Store) error {
	if err := wipe(ctx, store); err != nil {
		return fmt.Errorf("the session is gone from use, but its bytes may still be in the data file: %w; the next nudge that runs tries again", err)
	}
	_, err := fmt.Fprintln(a.out, "nothing of it is left in the data file")
	return err
}

func (a *app) eraseResting(ctx context.Context, store memory.Store, session string, yes bool) error {
	if err := a.confirmErasure(ctx, store, session, yes); err != nil {
		return err
	}
	var removed bot.Erased
	err := store.Update(ctx, func(tx memory.Tx) (err error) {
		removed, err = bot.EraseSession(tx, session)
		return err
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "erased %s: %s\n", session, removed)
	return err
}

// confirmErasure returns an error unless there is such a session and it may be erased.
func (a *app) confirmErasure(ctx context.Context, store memory.Store, session string, yes bool) error {
	err := store.View(ctx, func(tx memory.Tx) error {
		there, err := agent.HasSession(tx, session)
		if err == nil && !there {
			err = unknownSession(fmt.Errorf("erase session %.100q: %w", session, agent.ErrUnknownSession))
		}
		return err
	})
	if err != nil || yes {
		return err
	}
	return a.confirm(fmt.Sprintf("Erase session %s for good? [y/N] ", session), "nothing was erased")
}

// confirm asks a question, and returns an error that says no unless it is answered with yes.
func (a *app) confirm(question, no string) error {
	fmt.Fprint(a.out, question)
	answer, err := bufio.NewReader(a.in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	if word := strings.ToLower(strings.TrimSpace(answer)); word != "y" && word != "yes" {
		return errors.New(no)
	}
	return nil
}
