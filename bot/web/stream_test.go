package web

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nudge/agent"
)

func TestTwoTabs(t *testing.T) {
	p := startProgram(t, nil)
	first, second := openTab(t, p.server), openTab(t, p.server)
	await(t, "both tabs are open", func() bool { return first.snapshotsSeen() == 1 && second.snapshotsSeen() == 1 })
	first.say("write notes.md saying buy milk")
	second.sees(agent.Said, "buy milk")
	second.sees(agent.Final, "notes.md")
	second.say("delete notes.md")
	card := first.sees(agent.Approval, "delete_file")
	second.sees(agent.Approval, "delete_file")
	second.must("/api/decide", map[string]any{"card": card.ID, "verdict": "deny", "text": "not that one"})
	first.sees(agent.DecidedMark, "not that one")
	first.sees(agent.Final, "not that one")
	await(t, "both tabs show the same", func() bool { return slices.Equal(texts(first.shown()), texts(second.shown())) })
}

// TestCutOff cuts a tab's stream off: it goes on without a gap, without a repeat and without a new snapshot.
func TestCutOff(t *testing.T) {
	p := startProgram(t, nil)
	b := openTab(t, p.server)
	await(t, "the tab is open", func() bool { return b.snapshotsSeen() == 1 })
	var want []string
	for i := range 40 {
		text := fmt.Sprintf("number %d", i)
		want = append(want, text)
		p.tell(agent.Reply{Kind: agent.Final, Turn: "t1", Text: text, Address: home})
		if i%4 == 0 {
			b.drop()
		}
	}
	b.sees(agent.Final, "number 39")
	if got := texts(b.shown(agent.Final)); !slices.Equal(got, want) {
		t.Errorf("the tab shows %q", got)
	}
	if n := b.snapshotsSeen(); n != 1 {
		t.Errorf("it took %d snapshots", n)
	}
}

// TestRestart restarts the program: what was said and what waits is there again, and works.
func TestRestart(t *testing.T) {
	p := startProgram(t, nil)
	p.write("notes.md", "buy milk")
	b := openTab(t, p.server)
	b.say("delete notes.md")
	b.sees(agent.Approval, "notes.md")
	await(t, "the turn waits", func() bool { return len(b.shown(agent.WaitingMark)) > 0 })
	p.restart()
	b.at(p.server)
	await(t, "a new snapshot is there", func() bool { return b.snapshotsSeen() == 2 })
	if said := texts(b.shown(agent.Said)); !slices.Equal(said, []string{"delete notes.md"}) {
		t.Errorf("said: %q", said)
	}
	if b.shot.Working || b.shot.Turn == "" {
		t.Errorf("the turn that waits is told as %+v", b.shot)
	}
	card := b.sees(agent.Approval, "notes.md")
	if !slices.Equal(card.MayDecide, []string{"web:me"}) || !strings.Contains(card.Shown, `"path": "notes.md"`) || card.Expires == nil {
		t.Errorf("the card is not complete: %+v", card)
	}
	b.must("/api/decide", map[string]any{"card": card.ID, "verdict": "approve"})
	await(t, "the file is gone", func() bool { return !p.exists("notes.md") })
	b.sees(agent.Final, "notes.md")
	fresh := openTab(t, p.server)
	fresh.sees(agent.Final, "notes.md")
	if n := len(fresh.shown(agent.Approval)) + len(fresh.shown(agent.DecidedMark)); n != 2 {
		t.Errorf("a fresh tab shows %d cards and marks", n)
	}
}

// TestSteerInSnapshot opens a tab while words wait to be read: they are shown, with their receipt.
func TestSteerInSnapshot(t *testing.T) {
	p := startProgram(t, nil)
	b := openTab(t, p.server)
	b.say("wait 10 seconds")
	b.sees(agent.Progress, "run_command")
	b.say("no, write better.md saying keep it")
	fresh := openTab(t, p.server)
	said := fresh.sees(agent.Said, "better.md")
	if said.State != agent.Stored || said.ID == "" || !fresh.shot.Working {
		t.Errorf("the words that wait are told as %+v, working %v", said, fresh.shot.Working)
	}
	p.write("go", "")
	await(t, "the words were seen", func() bool {
		return slices.ContainsFunc(fresh.shown(agent.SteerMark), func(l line) bool { return l.ID == said.ID && l.State == agent.SeenAt && l.Step == 2 })
	})
	fresh.sees(agent.Final, "better.md")
}

func TestSessions(t *testing.T) {
	p := startProgram(t, nil)
	b, other := openTab(t, p.server), openTab(t, p.server)
	b.say("write notes.md saying buy milk")
	b.sees(agent.Final, "notes.md")
	await(t, "the turn has ended", func() bool { return len(b.shown(agent.SettledMark)) == 1 })
	other.sees(agent.Final, "notes.md")
	b.must("/api/say", map[string]any{"text": "/new", "quiet": true})
	for _, tab := range []*tab{b, other} {
		await(t, "the tab shows a fresh session", func() bool {
			return len(tab.shown(agent.Final, agent.Said)) == 0 && tab.snapshotsSeen() >= 2
		})
	}
	b.say("how full is the disk?")
	other.sees(agent.Final, "43%")
	await(t, "both sessions are listed", func() bool {
		_, body := send(t, signed(t.Context(), p.server, http.MethodGet, "/api/sessions", nil))
		return strings.Contains(body, `"current":2`) && strings.Contains(body, "write notes.md saying buy milk") && strings.Contains(body, "how full is the disk?")
	})
	b.must("/api/say", map[string]any{"text": "/resume 1", "quiet": true})
	b.sees(agent.Said, "buy milk")
	other.sees(agent.Said, "buy milk")
	if n := len(b.shown(agent.Said)); n != 1 {
		t.Errorf("%d messages are shown", n)
	}
}

// TestKept says things while no tab is open: the next one shows them, until its person does something.
func TestKept(t *testing.T) {
	p := startProgram(t, nil)
	for i := range mostKept + 3 {
		p.tell(agent.Reply{Kind: agent.Notice, Text: fmt.Sprintf("alarm %d", i), Address: home})
	}
	if err := p.hub.Drain(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	b := openTab(t, p.server)
	b.sees(agent.Notice, fmt.Sprintf("alarm %d", mostKept+2))
	if alarms := texts(b.shown(agent.Notice)); len(alarms) != mostKept || alarms[0] != "alarm 3" {
		t.Errorf("%d alarms are shown, the first is %q", len(alarms), alarms[0])
	}
	p.restart()
	b.at(p.server)
	await(t, "a new snapshot is there", func() bool { return b.snapshotsSeen() == 2 })
	b.sees(agent.Notice, "alarm 3")
	b.say("how full is the disk?")
	b.sees(agent.Final, "43%")
	fresh := openTab(t, p.server)
	fresh.sees(agent.Final, "43%")
	if alarms := fresh.shown(agent.Notice); len(alarms) != 0 {
		t.Errorf("the alarms are shown again: %q", texts(alarms))
	}
}

func TestNamedConversation(t *testing.T) {
	p := startProgram(t, nil)
	b := openTab(t, p.server)
	b.must("/api/say", map[string]any{"text": "write work.md saying hello", "conversation": "work"})
	await(t, "it is done", func() bool { return p.exists("work.md") })
	res, err := http.DefaultTransport.RoundTrip(signed(t.Context(), p.server, http.MethodGet, "/api/events?c=work", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	for e := range events(res.Body) {
		if !strings.Contains(e.data, "write work.md") {
			t.Errorf("the snapshot is %s", e.data)
		}
		break
	}
	if n := len(b.shown(agent.Said)); n != 0 {
		t.Error("another conversation's words are shown")
	}
}

// TestOwnerCard asks the owner at the browser about what somebody else wants.
func TestOwnerCard(t *testing.T) {
	p := startProgram(t, nil)
	p.end()
	p.policy = map[string]agent.Policy{"delete_file": agent.PolicyOwner}
	p.start()
	p.write("notes.md", "buy milk")
	b := openTab(t, p.server)
	await(t, "the tab is open", func() bool { return b.snapshotsSeen() == 1 })
	if r := p.ask("ci", "delete notes.md"); r.Kind != agent.Final {
		t.Errorf("who asked is told %+v", r)
	}
	b.sees(agent.Approval, "notes.md")
	fresh := openTab(t, p.server)
	card := fresh.sees(agent.Approval, "notes.md")
	if card.Session != "api:local:dm:ci" {
		t.Errorf("the card is of session %s", card.Session)
	}
	fresh.must("/api/decide", map[string]any{"card": card.ID, "verdict": "approve"})
	await(t, "the file is gone", func() bool { return !p.exists("notes.md") })
	b.sees(agent.DecidedMark, "delete_file")
}

// TestReader compares readers of any pace with the list of all lines: each reads a part without gaps and repeats, or
// learns that it is behind.
func TestReader(t *testing.T) {
	s := &Server{conversations: map[string]*conversation{}}
	s.programs = &adapter{server: s}
	rapid.Check(t, func(t *rapid.T) {
		c, leave := s.enter(rapid.StringMatching("[a-z]{8}").Draw(t, "address"))
		defer leave()
		type reading struct {
			*reader
			next uint64
		}
		var readers []*reading
		defer func() {
			for _, r := range readers {
				r.stop()
			}
		}()
		for range rapid.IntRange(1, 60).Draw(t, "acts") {
			switch rapid.IntRange(0, 3).Draw(t, "act") {
			case 0:
				for range rapid.SampledFrom([]int{1, 3, heldLines / 2, heldLines + 5}).Draw(t, "lines") {
					if err := c.publish(line{Reply: agent.Reply{Kind: agent.Final, Text: fmt.Sprint(c.last + 1)}}); err != nil {
						t.Fatal(err)
					}
				}
			case 1:
				readers = append(readers, &reading{c.follow(), c.last + 1})
			case 2:
				from := uint64(rapid.IntRange(0, int(c.last)+2).Draw(t, "from"))
				r, ok := c.followFrom(c.mark(from))
				if want := from <= c.last && from+uint64(len(c.lines)) >= c.last; ok != want {
					t.Fatalf("following from %d of %d: %v", from, c.last, ok)
				}
				if ok {
					readers = append(readers, &reading{r, from + 1})
				}
			case 3:
				for _, r := range readers {
					lines, err := r.reader.next()
					if (err != nil) != (c.last+1-r.next > uint64(len(c.lines))) {
						t.Fatalf("a reader at %d of %d: %v", r.next, c.last, err)
					}
					if err != nil {
						r.stop()
						r.after = c.last
						r.next = c.last + 1
						continue
					}
					for _, h := range lines {
						if h.number != r.next || h.line.Text != fmt.Sprint(r.next) {
							t.Fatalf("line %d %q where %d was due", h.number, h.line.Text, r.next)
						}
						r.next++
					}
					if r.next != c.last+1 {
						t.Fatalf("the reader stopped at %d of %d", r.next, c.last)
					}
				}
			}
		}
	})
}

// TestSlowTab has a tab that reads nothing: saying something does not wait for it.
func TestSlowTab(t *testing.T) {
	p := startProgram(t, nil)
	res, err := http.DefaultTransport.RoundTrip(signed(t.Context(), p.server, http.MethodGet, "/api/events", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b := openTab(t, p.server)
	await(t, "the tab is open", func() bool { return b.snapshotsSeen() == 1 })
	wide := strings.Repeat("x", 500_000)
	for i := range 24 {
		p.tell(agent.Reply{Kind: agent.Final, Turn: "t1", Text: fmt.Sprint(i, " ", wide), Address: home})
	}
	b.sees(agent.Final, "23 x")
	c, leave := p.server.enter(home)
	defer leave()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bytes > heldBytes+len(wide)+1000 {
		t.Errorf("%d bytes are held", c.bytes)
	}
}

func TestTooManyTabs(t *testing.T) {
	p := startProgram(t, nil)
	for range maxTabs {
		p.server.tabs <- struct{}{}
	}
	res, body := send(t, signed(t.Context(), p.server, http.MethodGet, "/api/events", nil))
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
		t.Errorf("status %d: %s", res.StatusCode, body)
	}
	for range maxTabs {
		<-p.server.tabs
	}
}

func TestRepeat(t *testing.T) {
	p := startProgram(t, nil)
	b := openTab(t, p.server)
	body := map[string]any{"id": "the-same-id", "text": "how full is the disk?"}
	b.must("/api/say", body)
	if status, answered := b.post("/api/say", body); status != 200 || !strings.Contains(answered, `"repeat":true`) {
		t.Errorf("status %d: %s", status, answered)
	}
	b.sees(agent.Final, "43%")
	await(t, "the turn has ended", func() bool { return len(b.shown(agent.SettledMark)) == 1 })
	if n := len(b.shown(agent.Said)); n != 1 {
		t.Errorf("the words are shown %d times", n)
	}
}

// TestEditFault names the place of a fault.
func TestEditFault(t *testing.T) {
	for text, want := range map[string]string{
		"{\n  \"a\": 1,\n  \"é\": x}": "line 3, column 8",
		"":                            "line 1, column 1",
		`{"a": 1`:                     "line 1",
		`[1]`:                         "object",
		`"x"`:                         "object",
		`{"a": 1}`:                    "",
	} {
		got := argumentsFault(text)
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// TestUnread serves one with nobody listening.
func TestUnread(t *testing.T) {
	s, err := New(Config{Listen: "127.0.0.1:0", Store: emptyStore(t)})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if err := s.Serve(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	req := signed(t.Context(), s, http.MethodPost, "/api/say", []byte(sayBody))
	res, body := send(t, req)
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" || !strings.Contains(body, "starting") {
		t.Errorf("status %d: %s", res.StatusCode, body)
	}
}
