package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// soakPerson is somebody who talks: at a terminal, or a program that posts.
type soakPerson struct {
	name     string
	api      bool
	rude     bool     // kills the chat, so that not everything said to them is seen
	sessions []string // conversations of the API; the one without a name when nil

	soak *soak
	dice *rand.Rand

	mu    sync.Mutex
	said  int
	cards map[string]line // that wait for them, as far as they know
	old   []string        // cards that do not
	heard []soakHeard     // at a terminal, what is told once
	chats int
}

// soakHeard is a line that a person has seen.
type soakHeard struct {
	line
	life, chat int // twice the life's number, and one more after its end
}

// live talks for as long as a life lasts.
func (w *soakPerson) live(ctx context.Context, h *soakHolder) {
	if w.api {
		w.post(ctx, h)
		return
	}
	for ctx.Err() == nil {
		k := h.talk
		held := k != nil && w.name == "ann"
		if !held {
			k = h.place.chat("--user", w.name)
		}
		w.talk(ctx, h, k, held)
		if held {
			return
		}
	}
}

// talk talks through one chat until it ends.
func (w *soakPerson) talk(ctx context.Context, h *soakHolder, k *talk, held bool) {
	chat := w.enter()
	for _, l := range k.seen { // until it was known to listen
		w.hear(l, 2*h.life, chat)
	}
	next := time.NewTimer(w.patience())
	defer next.Stop()
	over, overdue := ctx.Done(), (<-chan time.Time)(nil)
	closed, killed, life, lines := false, false, 2*h.life, len(k.seen)
	for {
		select {
		case l, open := <-k.lines:
			if !open {
				w.leave(h, k, held, killed)
				return
			}
			lines++
			if l.Kind == "not JSON" && !killed && !h.killed() {
				h.place.t.Errorf("%s's chat printed %q", w.name, l.raw)
			}
			w.hear(l, life, chat)
		case <-over:
			over, overdue = nil, time.After(patience)
			if lines == 0 { // it may have started too late for the process that ends, and be the next to hold the file
				life++
			}
			if h.how == soakClose || lines == 0 {
				k.in.Close()
				closed = true
			}
		case <-overdue:
			h.place.t.Errorf("%s's chat goes on after %s, %d lines were said to it:\n%s", w.name, h.how, lines, k.so())
			_ = k.cmd.Process.Kill()
			killed = true
		case <-next.C:
			switch leave := w.roll(200); {
			case closed || over == nil || killed:
			case leave == 0 && !held && w.rude:
				_ = k.cmd.Process.Kill()
				killed = true
			case leave <= 2 && !held:
				k.in.Close() // the chat ends when nothing of theirs runs
				closed = true
			default:
				_, _ = io.WriteString(k.in, w.act()+"\n") // a program that ended takes nothing
			}
			next.Reset(w.patience())
		}
	}
}

// enter counts a chat.
func (w *soakPerson) enter() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.chats++
	return w.chats
}

// leave waits for a chat's process.
func (w *soakPerson) leave(h *soakHolder, k *talk, held, killed bool) {
	_ = k.cmd.Wait() // the status is looked at below
	w.soak.count("chats")
	status := k.cmd.ProcessState.ExitCode()
	if errs := k.errs.String(); alarming.MatchString(errs) {
		h.place.t.Errorf("%s's chat wrote:\n%s", w.name, errs)
	}
	if mayFail := killed || h.ending.Load() && !held || h.killed(); status != 0 && !mayFail {
		h.place.t.Errorf("%s's chat ended with status %d:\n%s", w.name, status, k.errs.String())
	}
}

// listen reads, decides what waits and says nothing else, until ctx ends; then it waits for the chat to end by itself.
func (w *soakPerson) listen(ctx context.Context, h *soakHolder) {
	k := h.place.chat("--user", w.name)
	chat := w.enter()
	next := time.NewTicker(300 * time.Millisecond)
	defer next.Stop()
	over, overdue := ctx.Done(), (<-chan time.Time)(nil)
	for {
		select {
		case l, open := <-k.lines:
			if !open {
				w.leave(h, k, false, false)
				return
			}
			w.hear(l, 2*h.life, chat)
		case <-over:
			over, overdue = nil, time.After(patience)
			k.in.Close()
		case <-overdue:
			h.place.t.Errorf("%s's chat does not end when nothing is said any more", w.name)
			_ = k.cmd.Process.Kill()
		case <-next.C:
			if text := w.decision(); text != "" && over != nil {
				_, _ = io.WriteString(k.in, text+"\n")
			}
		}
	}
}

// told are the kinds of lines that are told once, of a run or of a card.
var told = []string{"final", "notice", "notify", "ask", "approval", "decided", "steer", "waiting", "settled"}

// hear takes note of a line.
func (w *soakPerson) hear(l line, life, chat int) {
	if l.Session != "" && !strings.Contains(l.Session, ":dm:"+w.name) && !strings.Contains(l.Session, w.name) {
		w.soak.root.Errorf("%s is told something of the session %s: %s", w.name, l.Session, l.raw)
	}
	if l.Kind == "steer" && l.State == "stored" {
		for _, mark := range soakMark.FindAllString(l.Text, -1) {
			w.soak.ack(mark)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case l.Kind == "decided":
		w.drop(l.ID)
	case l.Kind == "approval" || l.Kind == "ask" || l.Kind == "notice" && len(l.Choices) > 0:
		w.cards[l.ID] = l
	}
	if !w.api && slices.Contains(told, l.Kind) {
		l.Arguments = nil
		w.heard = append(w.heard, soakHeard{l, life, chat})
	}
}

// drop forgets a card that waits no more. The caller holds mu.
func (w *soakPerson) drop(id string) {
	if _, waits := w.cards[id]; waits {
		delete(w.cards, id)
		w.old = append(w.old, id)
	}
}

func (w *soakPerson) roll(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dice.IntN(n)
}

// patience is how long the person waits before the next line.
func (w *soakPerson) patience() time.Duration {
	if w.roll(4) == 0 {
		return time.Duration(w.roll(150)) * time.Millisecond
	}
	return time.Duration(100+w.roll(1800)) * time.Millisecond
}

// act is what the person types next.
func (w *soakPerson) act() string {
	roll := w.roll(100)
	if roll < 45 {
		if text := w.decision(); text != "" {
			return text
		}
	}
	switch {
	case roll < 80:
		return w.say()
	case roll < 86:
		w.soak.count("stops said")
		return []string{"/stop", "stop"}[w.roll(2)]
	case roll < 90:
		w.soak.count("continue said")
		return "continue"
	case roll < 93:
		w.soak.count("commands")
		return "/new"
	case roll < 97:
		w.soak.count("commands")
		return []string{"/status", "/usage", "/approvals", "/sessions", "/help", "/heartbeats", "/resume 1", "/nonsense", "/approve nosuchcard"}[w.roll(9)]
	case roll < 98:
		w.soak.count("late decisions")
		return "/approve " + w.late()
	case roll < 99:
		w.soak.count("commands")
		return []string{"/stop all", "/go on", "/go on", "/go on"}[w.roll(4)]
	}
	return w.say() + strings.Repeat(" and take care of all of it", 150)
}

// late is a card that waits no more.
func (w *soakPerson) late() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.old) == 0 {
		return "nosuchcard"
	}
	return w.old[w.dice.IntN(len(w.old))]
}

// say makes words with a mark of their own.
func (w *soakPerson) say() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said++
	w.soak.count("words said")
	return fmt.Sprintf("%s-%d please go on", w.name, w.said)
}

// decision decides a card that waits; "" when there is none.
func (w *soakPerson) decision() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.cards) == 0 {
		return ""
	}
	ids := slices.Sorted(maps.Keys(w.cards)) // in an order that does not change from soak to soak
	l := w.cards[ids[w.dice.IntN(len(ids))]]
	w.drop(l.ID)
	w.soak.count("decisions about cards")
	roll := w.dice.IntN(100)
	switch {
	case l.Kind == "ask" && roll < 70:
		return "/answer " + l.ID + " red"
	case l.Kind == "ask":
		return "rather blue"
	case l.Kind == "notice" && len(l.Choices) == 2 && roll < 60:
		w.soak.runAgain(l.ID)
		return []string{"/approve " + l.ID, "/answer " + l.ID + " Run again"}[roll%2]
	case l.Kind == "notice" && len(l.Choices) == 2:
		return []string{"/deny " + l.ID, "/answer " + l.ID + " Leave it"}[roll%2]
	case l.Kind == "notice" && roll < 70:
		return "/approve " + l.ID
	case roll < 55:
		return "/approve " + l.ID
	case roll < 75:
		return "/deny " + l.ID
	case roll < 85 || l.Tool != "run_command":
		return "/deny " + l.ID + " the audit needs it"
	}
	return fmt.Sprintf(`/edit %s {"name":"ask-note","id":"%s"}`, l.ID, w.soak.model.effect())
}

// runAgain notes that somebody has asked to run a call again whose outcome is unknown.
func (s *soak) runAgain(card string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.again[card] = true
}

// post is the life of a program's person: up to three requests at once.
func (w *soakPerson) post(ctx context.Context, h *soakHolder) {
	client := &http.Client{Transport: &http.Transport{}, Timeout: patience}
	defer client.CloseIdleConnections()
	var busy sync.WaitGroup
	places := make(chan struct{}, 3)
	for {
		pause(ctx, w.patience())
		select {
		case <-ctx.Done():
			busy.Wait()
			return
		case places <- struct{}{}:
		}
		session := ""
		if w.sessions != nil {
			session = w.sessions[w.roll(len(w.sessions))]
		}
		text, streams := w.act(), w.roll(3) > 0
		busy.Go(func() {
			defer func() { <-places }()
			w.send(h, client, session, text, streams)
		})
	}
}

// send posts one text and reads the answer.
func (w *soakPerson) send(h *soakHolder, client *http.Client, session, text string, streams bool) {
	body, err := json.Marshal(map[string]string{"user": w.name, "session": session, "text": text})
	if err != nil {
		h.place.t.Error(err)
		return
	}
	req, err := http.NewRequest(http.MethodPost, h.origin+"/api/messages", bytes.NewReader(body))
	if err != nil {
		h.place.t.Error(err)
		return
	}
	req.Header.Set("Authorization", "Bearer "+soakToken)
	req.Header.Set("Content-Type", "application/json")
	if streams {
		req.Header.Set("Accept", "text/event-stream")
	}
	answer, err := client.Do(req)
	if err != nil {
		w.broken(h, "posts cut off", err)
		return
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(answer.Body)
		switch {
		case bytes.Contains(said, []byte("starting or ending")):
			w.soak.deny(text)
			w.soak.count("posts not taken yet, or no more")
			return
		case bytes.Contains(said, []byte("nothing was done")):
			w.soak.deny(text)
		case bytes.Contains(said, []byte("the message is kept")):
			for _, mark := range soakMark.FindAllString(text, -1) {
				w.soak.ack(mark)
			}
		}
		w.broken(h, "posts refused", fmt.Errorf("%s: %s", answer.Status, said))
		return
	}
	for _, mark := range soakMark.FindAllString(text, -1) {
		w.soak.ack(mark)
	}
	w.read(h, answer.Body)
}

// read reads what an answer says, line by line.
func (w *soakPerson) read(h *soakHolder, from io.Reader) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	n := 0
	for lines.Scan() {
		text := strings.TrimPrefix(lines.Text(), "data: ")
		var l line
		if !strings.HasPrefix(text, "{") {
			continue
		}
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			w.broken(h, "lines cut off", err)
			return
		}
		n++
		l.raw = text
		w.hear(l, 2*h.life, 0)
	}
	if err := lines.Err(); err != nil || n == 0 {
		w.broken(h, "answers cut off", fmt.Errorf("%d lines, %w", n, err))
		return
	}
	w.soak.count("posts answered")
}

// broken counts what the process's end broke off; anything else is an error.
func (w *soakPerson) broken(h *soakHolder, what string, err error) {
	w.soak.count(what)
	if !h.ending.Load() {
		h.place.t.Errorf("%s of %s: %v", what, w.name, err)
	}
}
