package bot_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"nudge/agent"
	"nudge/bot"
	"nudge/memory"
	"nudge/schedule"
)

// answered is what the hub says to one text of Ann's.
func (s *stage) answered(f *fake, text string) string {
	s.Helper()
	before := len(f.all())
	s.receive(s.event(text))
	var texts []string
	for _, d := range f.all()[before:] {
		if d.Text != "" && d.Kind != agent.SteerMark {
			texts = append(texts, string(d.Kind)+" "+d.Text)
		}
	}
	return strings.Join(texts, "|")
}

func (s *stage) expect(f *fake, text, want string) {
	s.Helper()
	if got := s.answered(f, text); got != want {
		s.Errorf("%q was answered %q, want %q", text, got, want)
	}
}

// newStage is a stage with one adapter on which Ann and Bob talk.
func newStage(t *testing.T, slash string) (*stage, *fake) {
	f := newFake()
	f.slash = slash
	return serve(t, openStore(t), bot.Config{Allow: []string{"chat:*"}}, f), f
}

func TestHelpNamesEveryCommand(t *testing.T) {
	s, f := newStage(t, "/")
	help := s.answered(f, "/help")
	for _, name := range []string{
		"help", "stop", "stop all", "go on", "access", "approve", "deny", "edit", "answer", "approvals", "new", "sessions", "resume", "export", "diary", "remember", "forget", "heartbeats",
		"useful", "less", "snooze", "link", "forget-me", "status", "usage", "model",
	} {
		if !strings.Contains(help, "\n/"+name+" ") {
			t.Errorf("help does not name /%s", name)
		}
		if got := s.answered(f, "/"+name); strings.Contains(got, "There is no command") {
			t.Errorf("help lists /%s, which is not there", name)
		}
	}
	if n := len(s.model.Requests()); n != 0 {
		t.Errorf("the model was asked %d times", n)
	}
}

// view is all that the newest request holds.
func (s *stage) view() string {
	s.Helper()
	requests := s.model.Requests()
	if len(requests) == 0 {
		s.Fatal("the model was not asked")
	}
	var view strings.Builder
	for _, msg := range requests[len(requests)-1].Messages {
		view.WriteString(msg.Text + "\n")
	}
	return view.String()
}

// TestWhatIsACommand tells commands from words, by the way in which the platform has them.
func TestWhatIsACommand(t *testing.T) {
	const unknown, model = "There is no command", "echo"
	for _, test := range []struct{ slash, text, want string }{
		{"/", "/usage", "You have spent"},
		{"/", "  /usage  ", "You have spent"},
		{"/", "/usage\tnow", "You have spent"},
		{"/", "/frobnicate it", unknown},
		{"/", "/etc/passwd is readable, is it not?", model},
		{"/", "/", model},
		{"/", "//usage", model},
		{"/", "/42", model},
		{"/", "usage", model},
		{"/", "what does /usage do?", model},
		{"/", "nudge usage", model},
		{"", "nudge usage", "You have spent"},
		{"", "Nudge Usage", "You have spent"},
		{"", "nudge  usage", "You have spent"},
		{"", "nudge frobnicate", unknown},
		{"", "nudge", model},
		{"", "nudge me about the milk tomorrow", model},
		{"", "nudgeusage", model},
		{"", "/usage", model},
		{"", "/etc/passwd is readable, is it not?", model},
		{"/", "stop", "Nothing is running"},
		{"/", " STOP ", "Nothing is running"},
		{"/", "/stop", "Nothing is running"},
		{"", "nudge stop", "Nothing is running"},
		{"/", "stop it", model},
	} {
		s, f := newStage(t, test.slash)
		if got := s.answered(f, test.text); !strings.Contains(got, test.want) || strings.Contains(got, "|") {
			t.Errorf("with %q before commands, %q was answered %q, want %q", test.slash, test.text, got, test.want)
		}
		if asked := len(s.model.Requests()) > 0; asked != (test.want == model) {
			t.Errorf("%q reached the model: %v", test.text, asked)
		}
		s.end()
	}
}

// TestCommandsOnce answers a command once, however often it is delivered.
func TestCommandsOnce(t *testing.T) {
	s, f := newStage(t, "/")
	for _, text := range []string{"/help", "/usage", "/frobnicate", "/new", "/approve", "stop"} {
		e := s.event(text)
		e.Keys = append(e.Keys, "another key of "+text)
		if got := s.receive(e); got != bot.Taken {
			t.Errorf("%s: admission %d", text, got)
		}
		said := len(f.all())
		for _, key := range e.Keys {
			again := e
			again.Keys = []string{"not seen before " + key, key}
			if got := s.receive(again); got != bot.Repeat {
				t.Errorf("%s again: admission %d", text, got)
			}
		}
		if len(f.all()) != said {
			t.Errorf("%s was answered again", text)
		}
	}
}

func TestSessions(t *testing.T) {
	s, f := newStage(t, "/")
	s.expect(f, "/sessions", "notice There is no conversation here yet.")
	s.expect(f, "/new", "notice This conversation is fresh already.")
	s.answered(f, "the first")
	s.expect(f, "/new", "notice This is a fresh conversation, number 2. /sessions lists the others.")
	s.answered(f, "the second")
	if view := s.view(); !strings.Contains(view, "the second") || strings.Contains(view, "the first") {
		t.Errorf("the fresh conversation is %q", view)
	}
	if got := s.answered(f, "/sessions"); !strings.Contains(got, "1  last used 2") || !strings.Contains(got, "2  last used 2") || !strings.HasSuffix(got, "(this one)") {
		t.Errorf("sessions: %q", got)
	}
	for _, text := range []string{"/resume", "/resume 3", "/resume 0", "/resume one", "/resume 1x"} {
		if got := s.answered(f, text); !strings.HasPrefix(got, "error There is no conversation number") {
			t.Errorf("%s: %q", text, got)
		}
	}
	s.expect(f, "/resume 1", "notice This is conversation number 1 again.")
	s.answered(f, "again the first")
	if view := s.view(); !strings.Contains(view, "the first\n") || strings.Contains(view, "the second\n") {
		t.Errorf("the conversation that was gone back to is %q", view)
	}
	s.expect(f, "/new", "notice This is a fresh conversation, number 3. /sessions lists the others.")
	e := s.event("/sessions")
	e.From, e.Address = bob, bobHome
	s.receive(e)
	if got := f.texts(bobHome); got != "There is no conversation here yet." {
		t.Errorf("Bob sees %q", got)
	}
}

func TestStatusAndUsage(t *testing.T) {
	s, f := newStage(t, "/")
	s.expect(f, "/usage", "notice You have spent $0.0000 today.")
	s.expect(f, "/model", "notice The model is scripted.")
	s.expect(f, "/status", "notice Nothing is being done here. Waiting for you: 0 cards. The model is scripted. The session is "+annHome+".")
	s.answered(f, "erase it")
	if got := s.answered(f, "/status"); !strings.Contains(got, "is under way. Waiting for you: 1 card.") {
		t.Errorf("status: %q", got)
	}
}

func TestHeartbeatsCommand(t *testing.T) {
	s, f := newStage(t, "/")
	s.expect(f, "/heartbeats", "notice No heartbeat wakes me for you.")
	err := s.store.Update(context.Background(), func(tx memory.Tx) error {
		for name, person := range map[string]agent.PersonID{"stretch": ann.ID, "secret": bob.ID} {
			h := schedule.Heartbeat{
				Name: name, Cron: "0 9 * * *", For: []string{string(person)}, Prompt: "Tell them.", Condition: schedule.Spec{Kind: schedule.KindAlways},
			}
			if err := schedule.Save(tx, h, time.Now()); err != nil {
				return err
			}
		}
		return schedule.Pause(tx, "stretch", "too loud")
	})
	if err != nil {
		t.Fatal(err)
	}
	s.expect(f, "/heartbeats", "notice stretch  every day at 09:00: Tell them.  (paused: too loud)")
}

// card is the newest card that was shown.
func (s *stage) card(f *fake) string {
	s.Helper()
	id := ""
	for _, d := range f.all() {
		if d.Kind == agent.Approval || d.Kind == agent.Ask {
			id = d.ID
		}
	}
	if id == "" {
		s.Fatal("no card was shown")
	}
	return id
}

// TestDecidingByCommand names the card, or none where only one waits.
func TestDecidingByCommand(t *testing.T) {
	for _, test := range []struct{ asks, says, result string }{
		{"erase it", "/approve ID", "erased"},
		{"erase it", "/approve", "erased"},
		{"erase it", "/deny ID", "not run: ann denied this call and gave no reason"},
		{"erase it", "/deny", "not run: ann denied this call and gave no reason"},
		{"erase it", "/deny too risky", "not run: ann denied this call: too risky"},
		{"erase it", "/deny ID too risky", "not run: ann denied this call: too risky"},
		{"erase it", "/deny ID\ntoo\nrisky", "not run: ann denied this call: too\nrisky"},
		{"erase it", "/edit ID {\"x\": \"y\"}", "(ann changed the arguments to {\"x\":\"y\"})\nerased"},
		{"erase it", "/edit ID\n{\"x\":\n\"y\"}", "(ann changed the arguments to {\"x\":\"y\"})\nerased"},
		{"ask_person", "/answer ID dark blue", "ann answered: dark blue"},
		{"ask_person", "/answer dark blue", "ann answered: dark blue"},
		{"ask_person", "dark blue", "ann answered: dark blue"},
	} {
		s, f := newStage(t, "/")
		s.answered(f, test.asks)
		got := s.answered(f, strings.ReplaceAll(test.says, "ID", s.card(f)))
		if !strings.HasSuffix(got, "final then: "+test.result) {
			t.Errorf("%q was answered %q, want %q", test.says, got, test.result)
		}
		s.end()
	}
}

// TestAlwaysByCommand saves the rule that the words say, or none where they say nothing that can be.
func TestAlwaysByCommand(t *testing.T) {
	for says, want := range map[string]string{
		"/approve ID always":             `erase {"x":"notes"}`,
		"/approve always":                `erase {"x":"notes"}`,
		"/approve ID Always any x":       "erase {} with any x that is a word",
		"/approve ID always\nAny\tx":     "erase {} with any x that is a word",
		"/approve ID always any x, x":    "erase {} with any x that is a word",
		"/approve always any x":          "erase {} with any x that is a word",
		"/approve ID always any":         "error After always comes nothing, or the word any and the names of what to leave open: /approve ID always, or /approve ID always any NAME. Nothing was decided.",
		"/approve ID always x":           "error After always comes nothing",
		"/approve ID always any , ":      "error After always comes nothing",
		"/approve always please":         "error After always comes nothing",
		"/approve ID always any y":       `error "y" cannot be left open; what can be is x. Nothing was decided.`,
		"/approve ID always any x and y": `error "and" cannot be left open; what can be is x. Nothing was decided.`,
		"/approve always any X":          `error "X" cannot be left open; what can be is x. Nothing was decided.`,
	} {
		s, f := newStage(t, "/")
		s.answered(f, "erase it")
		id := s.card(f)
		got := s.answered(f, strings.ReplaceAll(says, "ID", id))
		var rules []agent.Rule
		err := s.store.View(t.Context(), func(tx memory.Tx) (err error) {
			rules, err = agent.Rules(tx, ann.ID, time.Now())
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		_, waiting, err := s.hub.Card(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(want, "error ") {
			if !strings.HasPrefix(got, strings.ReplaceAll(want, "ID", id)) || len(rules) > 0 || !waiting {
				t.Errorf("%q was answered %q, saved %+v, and the card waits: %v", says, got, rules, waiting)
			}
		} else if len(rules) != 1 || rules[0].Text() != want || waiting || !strings.HasSuffix(got, "final then: erased") {
			t.Errorf("%q was answered %q, and saved %+v", says, got, rules)
		}
		s.end()
	}
}

// TestDecidingInVain says what is wrong, and decides nothing.
func TestDecidingInVain(t *testing.T) {
	s, f := newStage(t, "/")
	s.expect(f, "/approve", "error Nothing waits for a decision of yours.")
	s.expect(f, "/approvals", "notice Nothing waits for a decision of yours.")
	s.expect(f, "/approve nothing", "error There is no card nothing. /approvals lists those that wait.")
	s.answered(f, "erase it")
	id := s.card(f)
	for text, want := range map[string]string{
		"/approve nothing":                      "There is no card nothing",
		"/edit":                                 "Say which card and its new arguments",
		"/edit " + id:                           "Say which card and its new arguments",
		"/edit " + id + " {x: 1}":               "The arguments are not JSON, so nothing was decided",
		"/edit " + id + ` {"y":1}`:              "nothing was decided",
		"/answer " + id + " red":                "That is no question",
		"/answer " + id:                         "Say the answer too",
		"/approve " + id[:len(id)-1]:            "There is no card",
		"/approve " + id + "\u200b":             "There is no card",
		"/edit " + id + "x {\"x\":1}":           "There is no card",
		"/approve " + id + " nothing":           `There is no card "nothing"; always is said of one card at a time. Nothing was decided.`,
		"/approve " + id + " " + id + " always": "There is no card",
	} {
		if got := s.answered(f, text); !strings.Contains(got, want) || !strings.HasPrefix(got, "error ") {
			t.Errorf("%q was answered %q, want %q", text, got, want)
		}
	}
	if got := s.answered(f, "/approvals"); !strings.Contains(got, "May I run erase?") || !strings.Contains(got, id) {
		t.Errorf("approvals: %q", got)
	}
	if !s.last(f).Unlinked {
		t.Error("of what a call would do a platform can make links")
	}
	e := s.event("/approvals")
	e.From, e.Address = bob, bobHome
	s.receive(e)
	e = s.event("/approve " + id)
	e.From, e.Address = bob, bobHome
	s.receive(e)
	if got := f.texts(bobHome); got != "Nothing waits for a decision of yours.|This is not yours to decide: ann may." {
		t.Errorf("Bob was told %q", got)
	}
	if got := s.answered(f, "/approve"); !strings.HasSuffix(got, "final then: erased") {
		t.Errorf("the card that still waits: %q", got)
	}
	if got := s.answered(f, "/deny "+id+" late"); !strings.HasPrefix(got, "notice It was already approved by ann at ") {
		t.Errorf("a late decision was answered %q", got)
	}
}

// TestTwoCards asks which one is meant.
func TestTwoCards(t *testing.T) {
	s, f := newStage(t, "/")
	s.answered(f, "erase it")
	e := s.event("erase another")
	e.Address = annHome + ":aside"
	s.receive(e)
	s.expect(f, "/approve", "error Say which card: /approve ID. /approvals lists those that wait.")
	if got := s.answered(f, "/approve "+s.card(f)); got != "decided" && strings.Contains(got, "error") {
		t.Errorf("approving one of two: %q", got)
	}
	if got := f.texts(annHome + ":aside"); !strings.HasSuffix(got, "then: erased") {
		t.Errorf("the other conversation was told %q", got)
	}
}

// TestCardsNameCommandsAsTheyAreTyped lists a card where commands begin with a slash, and where they begin with a word.
func TestCardsNameCommandsAsTheyAreTyped(t *testing.T) {
	for slash, want := range map[string]string{"/": "/", "": "nudge "} {
		s, f := newStage(t, slash)
		s.answered(f, "erase it")
		id := s.card(f)
		got := s.answered(f, want+"approvals")
		for _, command := range []string{"approve " + id, "deny " + id, "edit " + id} {
			if !strings.Contains(got, want+command) || slash == "" && strings.Contains(got, "/"+command) {
				t.Errorf("with %q before commands, the card says %q", slash, got)
			}
		}
	}
}

// TestCardForAForm gives a card while it waits, and not after.
func TestCardForAForm(t *testing.T) {
	s, f := newStage(t, "/")
	s.answered(f, "erase it")
	id := s.card(f)
	card, waiting, err := s.hub.Card(context.Background(), id)
	if err != nil || !waiting || card.Tool != "erase" || string(card.Arguments) != `{"x":"notes"}` || card.Address != annHome {
		t.Errorf("the card is %+v, waiting %v, error %v", card, waiting, err)
	}
	s.answered(f, "/deny")
	for _, id := range []string{id, "", "nothing", strings.Repeat("x", 5000)} {
		if card, waiting, err := s.hub.Card(context.Background(), id); err != nil || waiting {
			t.Errorf("%.20q: %+v, waiting %v, error %v", id, card, waiting, err)
		}
	}
}

// TestClickOnNothing answers a button of a card that was never asked.
func TestClickOnNothing(t *testing.T) {
	s, f := newStage(t, "/")
	e := s.event("")
	e.Click = &agent.Decision{Card: "nothing", Verdict: agent.Approve}
	if got := s.receive(e); got != bot.Taken || !strings.Contains(f.texts(annHome), "There is no card nothing.") {
		t.Errorf("admission %d, said %q", got, f.texts(annHome))
	}
}

// TestABatchThatIsNone decides all cards of a batch by one that is in none, and by nonsense.
func TestABatchThatIsNone(t *testing.T) {
	s, f := newStage(t, "/")
	s.answered(f, "erase it")
	card := s.card(f)
	for verdict, want := range map[agent.Verdict]string{agent.Approve: "cannot be decided at once", agent.Always: "cannot be decided at once"} {
		e := s.event("")
		e.Click, e.Batch = &agent.Decision{Card: card, Verdict: verdict}, true
		if got := s.receive(e); got != bot.Taken || !strings.Contains(f.texts(annHome), want) {
			t.Errorf("%s: admission %d, said %q", verdict, got, f.texts(annHome))
		}
	}
	if _, waiting, err := s.hub.Card(context.Background(), card); err != nil || !waiting {
		t.Errorf("the card waits: %v, %v", waiting, err)
	}
	e := s.event("")
	e.Click, e.Batch = &agent.Decision{Card: "nothing", Verdict: agent.Deny}, true
	if s.receive(e); !strings.Contains(f.texts(annHome), "do not know that card") {
		t.Errorf("said %q", f.texts(annHome))
	}
}

// TestStopAll is for owners: it stops every turn and lets heartbeats rest until they go on.
func TestStopAll(t *testing.T) {
	f := newFake()
	rescheduled := 0
	s := serve(t, openStore(t), bot.Config{
		Allow: []string{"chat:*"}, Owners: []agent.PersonID{bob.ID}, Rescheduled: func() { rescheduled++ },
	}, f)
	err := s.store.Update(context.Background(), func(tx memory.Tx) error {
		return schedule.Save(tx, schedule.Heartbeat{
			Name: "stretch", Cron: "0 9 * * *", For: []string{string(ann.ID)}, Prompt: "Tell them.", Condition: schedule.Spec{Kind: schedule.KindAlways},
		}, time.Now())
	})
	if err != nil {
		t.Fatal(err)
	}
	s.answered(f, "erase it")
	s.expect(f, "/stop all", "error Only an owner may do that.")
	byBob := func(text string) string {
		before := f.texts(bobHome)
		e := s.event(text)
		e.From, e.Address = bob, bobHome
		s.receive(e)
		return strings.TrimPrefix(strings.TrimPrefix(f.texts(bobHome), before), "|")
	}
	if got := byBob("Stop all"); got != "Stopped: 1 turn. Paused: 1 heartbeat. `go on` lets the heartbeats go on." {
		t.Errorf("stop all: %q", got)
	}
	if got := f.texts(annHome); !strings.HasSuffix(got, "Stopped.") {
		t.Errorf("Ann was told %q", got)
	}
	if got := s.answered(f, "/heartbeats"); !strings.Contains(got, "paused: stop all") {
		t.Errorf("heartbeats: %q", got)
	}
	if got := byBob("/go on"); got != "Going on: 1 heartbeat." || rescheduled != 1 {
		t.Errorf("go on: %q, rescheduled %d times", got, rescheduled)
	}
	if got := s.answered(f, "/heartbeats"); strings.Contains(got, "paused") {
		t.Errorf("heartbeats: %q", got)
	}
}

// TestApprovalsWhereOthersReadAlong shows the cards that stand there, and no arguments of those that stand elsewhere.
func TestApprovalsWhereOthersReadAlong(t *testing.T) {
	f := newFake()
	s := serve(t, openStore(t), bot.Config{Allow: []string{"chat:*"}}, f)
	const thread = "chat:T:C:1"
	s.receive(s.event("erase it"))
	private := f.cards()[0]
	list := func(address string) string {
		e := s.event("/approvals")
		e.Address = address
		s.receive(e)
		all := f.all()
		return all[len(all)-1].Text
	}
	if got := list(thread); strings.Contains(got, "notes") || strings.Contains(got, private) || !strings.Contains(got, "1 card") {
		t.Errorf("in a thread of others approvals says %q", got)
	}
	e := s.event("please\nerase it")
	e.Address = thread
	s.receive(e)
	public := f.cards()[1]
	if got := list(thread); !strings.Contains(got, public) || strings.Contains(got, private) || !strings.Contains(got, "1 card") {
		t.Errorf("where a card stands approvals says %q", got)
	}
	if got := list(annHome); !strings.Contains(got, public) || !strings.Contains(got, private) {
		t.Errorf("in direct messages approvals says %q", got)
	}
}

// TestHeartbeatsWhereOthersReadAlong are told to their person alone.
func TestHeartbeatsWhereOthersReadAlong(t *testing.T) {
	f := newFake()
	s := serve(t, openStore(t), bot.Config{Allow: []string{"chat:*"}}, f)
	for _, command := range []string{"/heartbeats", "/snooze", "/usage"} {
		e := s.event(command)
		e.Address = "chat:T:C:1"
		s.receive(e)
		if all := f.all(); all[len(all)-1].To != ann.ID {
			t.Errorf("the answer to %s is for %q", command, all[len(all)-1].To)
		}
		s.receive(s.event(command))
		if all := f.all(); all[len(all)-1].To != "" {
			t.Errorf("in direct messages the answer to %s is for %q", command, all[len(all)-1].To)
		}
	}
}

// TestClicksAtACardInSomebodysDirectMessages are answered in those of whoever has clicked, and nowhere else.
func TestClicksAtACardInSomebodysDirectMessages(t *testing.T) {
	f := newFake()
	s := serve(t, openStore(t), bot.Config{Allow: []string{"chat:*"}}, f)
	s.receive(s.event("erase it"))
	card := f.cards()[0]
	click := func(who agent.Person) {
		e := s.event("")
		e.From, e.Click = who, &agent.Decision{Card: card, Verdict: agent.Approve}
		s.receive(e)
	}
	click(bob)
	click(ann)
	click(bob)
	if got := f.texts(annHome); strings.Contains(got, "not yours") || strings.Contains(got, "already") {
		t.Errorf("ann reads %q", got)
	}
	if got := f.texts(bobHome); !strings.Contains(got, "not yours") || !strings.Contains(got, "already approved") {
		t.Errorf("bob reads %q", got)
	}
}

// cards are the ids of those that were shown.
func (f *fake) cards() (ids []string) {
	for _, d := range f.all() {
		if d.Kind == agent.Approval {
			ids = append(ids, d.ID)
		}
	}
	return ids
}
