package bot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"nudge/agent"
	notes "nudge/agent/tool/diary"
	"nudge/memory"
	"nudge/memory/diary"
	"nudge/schedule"
)

const (
	shownNotes  = 20  // in a list
	shownNote   = 300 // bytes of one in a list
	searchNotes = 8
)

// errNoDiary is told where the program keeps none.
var errNoDiary = errors.New("there is no diary here")

// diaryOf is the diary of an event's person, as it may be shown where the event came from.
func (h *Hub) diaryOf(tx memory.Tx, e Event) (diary.View, error) {
	if h.Diary == nil {
		return diary.View{}, errNoDiary
	}
	return notes.ViewOf(tx, e.From.ID, e.Address)
}

// diaryView is diaryOf in a transaction of its own.
func (h *Hub) diaryView(ctx context.Context, e Event) (v diary.View, err error) {
	err = h.Store.View(ctx, func(tx memory.Tx) (err error) {
		v, err = h.diaryOf(tx, e)
		return err
	})
	return v, err
}

// diary lists what is remembered of a person, or does something with it.
func (h *Hub) diary(ctx context.Context, e Event, rest string) (Admission, error) {
	what, rest := cutWord(rest)
	switch strings.ToLower(what) {
	case "":
		return h.listNotes(ctx, e, shownNotes)
	case "export":
		return h.listNotes(ctx, e, 0)
	case "search":
		return h.searchNotes(ctx, e, rest)
	case "edit":
		return h.editNote(ctx, e, rest)
	case "delete":
		return h.forgetNote(ctx, e, rest)
	}
	return h.answer(ctx, e, agent.Fault, fmt.Sprintf("Say %s, or behind it: search WORDS, edit ID TEXT, delete ID, export.", h.word(e.Address, "diary")))
}

// listNotes answers with a person's notes, the newest first; most of them at most, and cut short, but for 0.
func (h *Hub) listNotes(ctx context.Context, e Event, most int) (Admission, error) {
	return h.answerAlone(ctx, e, func(tx memory.Tx) (agent.Kind, string, error) {
		v, err := h.diaryOf(tx, e)
		if err != nil {
			return agent.Fault, sentenceOf(err), nil
		}
		all, err := diary.List(tx, v)
		if err != nil || len(all) == 0 {
			return agent.Notice, nothingRemembered(e), err
		}
		lines := []string{fmt.Sprintf("I remember %s of you%s.", schedule.Counted(len(all), "note"), where(e))}
		for i, n := range all {
			if most > 0 && i == most {
				lines = append(lines, fmt.Sprintf("There are %d more: %s finds some, %s shows all.", len(all)-most, h.word(e.Address, "diary search WORDS"), h.word(e.Address, "diary export")))
				break
			}
			lines = append(lines, noteLine(n, e, most > 0))
		}
		if most > 0 {
			lines = append(lines, fmt.Sprintf("%s removes one.", h.word(e.Address, "forget ID")))
		}
		return agent.Notice, strings.Join(lines, "\n"), nil
	})
}

func nothingRemembered(e Event) string { return "Nothing is remembered of you" + where(e) + "." }

// where says which part of a diary is shown, where that is not all of it.
func where(e Event) string {
	if agent.Direct(e.Address) {
		return ""
	}
	return " from this channel; the rest I tell in direct messages only"
}

// noteLine is a note for its person.
func noteLine(n diary.Note, e Event, short bool) string {
	text := n.Text
	if short {
		text = agent.Head(strings.Join(strings.Fields(text), " "), shownNote)
		if text != n.Text && len(n.Text) > shownNote {
			text += "…"
		}
	}
	line := fmt.Sprintf("%s  %s, %s: %s", n.ID, n.Said.In(zoneOf(e.From)).Format(time.DateOnly), n.Age(e.at()), text)
	var marks []string
	if n.Newer != "" {
		marks = append(marks, "older: another note took its place")
	}
	if n.Origin.Outside {
		marks = append(marks, "written while text of strangers was in view")
	}
	if n.Scope != diary.Private && agent.Direct(e.Address) {
		marks = append(marks, "from "+n.Scope)
	}
	if n.Stale(e.at()) {
		marks = append(marks, "old")
	}
	if len(marks) > 0 {
		line += "  (" + strings.Join(marks, "; ") + ")"
	}
	return line
}

func (h *Hub) searchNotes(ctx context.Context, e Event, words string) (Admission, error) {
	if words == "" {
		return h.answer(ctx, e, agent.Fault, fmt.Sprintf("Say what to look for: %s.", h.word(e.Address, "diary search WORDS")))
	}
	v, err := h.diaryView(ctx, e)
	if err != nil {
		return h.refuseNote(ctx, e, "", err)
	}
	hits, err := h.Diary.Search(ctx, v, words, searchNotes)
	if err != nil {
		return 0, err
	}
	lines := make([]string, len(hits))
	for i, hit := range hits {
		lines[i] = noteLine(hit.Note, e, true)
	}
	if len(lines) == 0 {
		lines = []string{"Nothing that I remember of you has anything of that."}
	}
	return h.answerAlone(ctx, e, func(memory.Tx) (agent.Kind, string, error) {
		return agent.Notice, strings.Join(lines, "\n"), nil
	})
}

// remember notes what a person says, in their own words.
func (h *Hub) remember(ctx context.Context, e Event, text string) (Admission, error) {
	if first, rest := cutWord(text); strings.EqualFold(first, "that") {
		text = rest
	}
	if text == "" {
		return h.answer(ctx, e, agent.Fault, fmt.Sprintf("Say what to remember: %s.", h.word(e.Address, "remember TEXT")))
	}
	v, err := h.diaryView(ctx, e)
	if err != nil {
		return h.refuseNote(ctx, e, "", err)
	}
	draft, err := h.Diary.Draft(ctx, diary.Note{
		Text: text, Scope: v.Scope, Said: e.at(), Origin: diary.Origin{By: "person", Account: string(e.From.ID)},
	})
	if err != nil {
		return h.refuseNote(ctx, e, "", err)
	}
	return h.answerAlone(ctx, e, func(tx memory.Tx) (agent.Kind, string, error) {
		if err := diary.Room(tx, v.Person, draft.Note); errors.Is(err, diary.ErrFull) {
			return agent.Fault, sentenceOf(err), nil
		} else if err != nil {
			return "", "", err
		}
		n, change, err := h.Diary.Put(tx, v.Person, draft)
		switch {
		case err != nil:
			return "", "", err
		case change == diary.Same:
			return agent.Notice, fmt.Sprintf("I knew that, as note %s. It counts as said today.", n.ID), nil
		}
		return agent.Notice, fmt.Sprintf("Noted as %s. %s removes it.", n.ID, h.word(e.Address, "forget "+n.ID)), nil
	})
}

func (h *Hub) editNote(ctx context.Context, e Event, rest string) (Admission, error) {
	id, text := cutWord(rest)
	if id == "" || text == "" {
		return h.answer(ctx, e, agent.Fault, fmt.Sprintf("Say which note and its new text: %s.", h.word(e.Address, "diary edit ID TEXT")))
	}
	v, err := h.diaryView(ctx, e)
	if err != nil {
		return h.refuseNote(ctx, e, id, err)
	}
	draft, err := h.Diary.Redraft(ctx, v, id, text)
	if err != nil {
		return h.refuseNote(ctx, e, id, err)
	}
	return h.answerAlone(ctx, e, func(tx memory.Tx) (agent.Kind, string, error) {
		n, err := h.Diary.Rewrite(tx, v, id, draft)
		switch {
		case errors.Is(err, diary.ErrUnknownNote):
			return agent.Fault, h.noNote(e, id), nil
		case errors.Is(err, diary.ErrFull):
			return agent.Fault, sentenceOf(err), nil
		}
		return agent.Notice, "Now it says: " + noteLine(n, e, true), err
	})
}

// forgetNote removes one of a person's notes.
func (h *Hub) forgetNote(ctx context.Context, e Event, rest string) (Admission, error) {
	id, _ := cutWord(rest)
	if id == "" {
		return h.answer(ctx, e, agent.Fault, fmt.Sprintf("Say which note: %s. %s lists them.", h.word(e.Address, "forget ID"), h.word(e.Address, "diary")))
	}
	return h.answerAlone(ctx, e, func(tx memory.Tx) (agent.Kind, string, error) {
		v, err := h.diaryOf(tx, e)
		if err != nil {
			return agent.Fault, sentenceOf(err), nil
		}
		n, err := h.Diary.Delete(tx, v, id)
		if errors.Is(err, diary.ErrUnknownNote) {
			return agent.Fault, h.noNote(e, id), nil
		}
		return agent.Notice, fmt.Sprintf("Forgotten: %s. A conversation in which it was said still has the words; %s removes one. The bytes leave the data file within a minute.",
			noteLine(n, e, true), h.word(e.Address, "sessions erase NUMBER")), err
	})
}

func (h *Hub) noNote(e Event, id string) string {
	return fmt.Sprintf("There is no note %.40q of yours here. %s lists them.", id, h.word(e.Address, "diary"))
}

// refuseNote answers why nothing was done; what is no fault of the person's is an error.
func (h *Hub) refuseNote(ctx context.Context, e Event, id string, err error) (Admission, error) {
	switch {
	case errors.Is(err, diary.ErrUnknownNote):
		return h.answer(ctx, e, agent.Fault, h.noNote(e, id))
	case errors.Is(err, diary.ErrBlank):
		return h.answer(ctx, e, agent.Fault, "There is nothing in it to remember.")
	case errors.Is(err, diary.ErrLong), errors.Is(err, errNoDiary):
		return h.answer(ctx, e, agent.Fault, sentenceOf(err))
	}
	return 0, err
}

// sentenceOf is an error as a sentence.
func sentenceOf(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:] + "."
}
