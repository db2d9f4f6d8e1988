package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"nudge/agent/model/modeltest"
	"nudge/bot/bottest/discordtest"
)

// Who there is on Discord: Ann is served, Olga is an owner, Eve is not served. All are in the channel.
const (
	discordAnn     = "101"
	discordOlga    = "102"
	discordEve     = "103"
	discordChannel = "900"
	tokenVariable  = "NUDGE_TEST_DISCORD"
)

// den is `nudge serve` as a process of its own, with a Discord on a port of this machine and the demo model.
type den struct {
	*testing.T
	serving
	place   place
	discord *discordtest.Server
}

// newDen makes one in which Ann is served, and others who are named as in [access].
func newDen(t *testing.T, options discordtest.Options, others ...string) *den {
	t.Helper()
	return newDenWith(t, nil, options, others...)
}

// newDenWith makes one with another model, if it is not nil.
func newDenWith(t *testing.T, model *modeltest.Server, options discordtest.Options, others ...string) *den {
	t.Helper()
	allow := strings.Join(append(others, fmt.Sprintf("%q, %q", "discord:"+discordAnn, "discord:"+discordOlga)), ", ")
	d := &den{T: t, discord: discordtest.New(options)}
	t.Cleanup(d.discord.Close)
	d.discord.AddUser(discordtest.User{ID: discordAnn, Name: "Ann"})
	d.discord.AddUser(discordtest.User{ID: discordOlga, Name: "Olga"})
	d.discord.AddUser(discordtest.User{ID: discordEve, Name: "Eve"})
	d.discord.AddChannel(discordChannel)
	d.place = newPlace(t, model, fmt.Sprintf("[discord]\ntoken_env = %q\napi_url = %q\n[access]\nallow = [%s]\nowners = [%q]\n[web]\nlisten = \"\"\n"+
		"[[command]]\nname = \"wait\"\nrun = [\"sleep\", \"{seconds}\"]\neffect = \"read\"\napprove = \"no\"\nparameters = { seconds = \"[0-9]+\" }\n",
		tokenVariable, d.discord.APIURL(), allow, "discord:"+discordOlga))
	t.Cleanup(func() {
		d.kill()
		if t.Failed() {
			for _, in := range append(d.discord.Threads(discordChannel), discordChannel, discordtest.DM(discordAnn)) {
				for _, m := range d.discord.Messages(in) {
					t.Logf("in %s %s says %q", in, m.Author, m.Text)
				}
			}
			t.Logf("the program printed:\n%s", d.printed())
		}
	})
	return d
}

func (d *den) start() {
	d.Helper()
	d.serve(d.T, d.place, tokenVariable+"="+discordtest.Token)
}

func (d *den) kill() { d.ended(syscall.SIGKILL) }

// ended ends the program with a signal, if it runs, and waits for it.
func (d *den) ended(by syscall.Signal) {
	d.Helper()
	if d.cmd == nil {
		return
	}
	if err := d.signal(by); err != nil {
		d.Fatal(err)
	}
	d.discord.Drop()
}

// told waits until the bot says some words in a channel.
func (d *den) told(in, words string) (found discordtest.Message) {
	d.Helper()
	eventually(d.T, "the bot says "+words, func() bool {
		for _, m := range d.discord.ByBot(in) {
			if strings.Contains(discordtest.Read(m.Text), words) {
				found = m
				return true
			}
		}
		return false
	})
	return found
}

// linked waits until the program has begun as many sessions as that.
func (d *den) linked(sessions int) {
	d.Helper()
	eventually(d.T, "there is a session", func() bool { return len(d.discord.Commands()) >= 2*sessions && d.discord.Linked() })
}

// TestDiscord talks with the program, decides a card before and after kill -9, and mentions the bot in a channel.
func TestDiscord(t *testing.T) {
	d := newDen(t, discordtest.Options{})
	d.start()
	d.linked(1)
	dm := discordtest.DM(discordAnn)
	d.discord.Say(discordAnn, dm, "write notes.md saying buy milk")
	d.told(dm, "notes.md")
	d.discord.Say(discordAnn, dm, "delete notes.md")
	card := d.told(dm, "May I run")
	d.kill()
	d.start()
	d.linked(2)
	approve := card.FirstButtons()[0]
	if approve.Label != "Approve" {
		t.Fatalf("the first button is %q", approve.Label)
	}
	click, _ := d.discord.Click(discordAnn, dm, card.ID, approve.ID)
	d.told(dm, "approved by <@"+discordAnn+">")
	if typ, _ := d.discord.Answered(click); typ != 6 {
		t.Errorf("the click was answered with type %d", typ)
	}
	message, _ := d.discord.Say(discordAnn, discordChannel, "<@"+discordtest.Bot+"> list files")
	d.told(message, "") // in the thread under the message, which has its id
	stranger, _ := d.discord.Say(discordEve, discordChannel, "<@"+discordtest.Bot+"> list files")
	d.discord.Slash(discordAnn, discordChannel, "status")
	d.told(discordChannel, "in your direct messages")
	if said := d.discord.ByBot(stranger); len(said) > 0 {
		t.Errorf("a stranger is told %q", said[0].Text)
	}
	d.interrupt(t)
}

// TestDiscordBatch decides three cards with one press after kill -9, and presses once more.
func TestDiscordBatch(t *testing.T) {
	d := newDenWith(t, modeltest.NewServer(t, clearScript), discordtest.Options{})
	for _, name := range []string{"a.txt", "b.txt", "c.txt"} {
		if err := os.WriteFile(d.place.workspace(name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d.start()
	d.linked(1)
	dm := discordtest.DM(discordAnn)
	d.discord.Say(discordAnn, dm, "please clear it")
	last := d.told(dm, "All 3 of these at once:")
	for _, part := range []string{`1) {"path":"a.txt"}`, `2) {"path":"b.txt"}`, `3) {"path":"c.txt"}`} {
		if !strings.Contains(last.Text, part) {
			t.Errorf("the last card does not say %q: %q", part, last.Text)
		}
	}
	d.kill()
	d.start()
	d.linked(2)
	press := func(label string) {
		t.Helper()
		for _, b := range last.FirstButtons() {
			if b.Label == label {
				d.discord.Click(discordAnn, dm, last.ID, b.ID)
				return
			}
		}
		t.Fatalf("there is no button %q", label)
	}
	press("Approve all 3")
	d.told(dm, "It says: Deleted")
	settled := 0
	for _, m := range d.discord.ByBot(dm) {
		if strings.Contains(m.Text, "approved by <@"+discordAnn+">") && strings.Contains(m.Text, "<t:") && len(m.Buttons()) == 0 {
			settled++
		}
	}
	left, err := os.ReadDir(d.place.workspace(""))
	if settled != 3 || err != nil || len(left) > 0 {
		t.Errorf("%d cards are settled, and the files %v are left", settled, left)
	}
	press("Deny all 3")
	d.told(dm, "It was already approved by Ann")
}

// TestDoctorAsksDiscord lets the doctor find a token that is not taken, and the switch that is off.
func TestDoctorAsksDiscord(t *testing.T) {
	for name, test := range map[string]struct {
		options     discordtest.Options
		token, want string
		status      int
	}{
		"fine":   {discordtest.Options{}, discordtest.Token, "Nudge (app " + discordtest.App + "); the token is taken", 0},
		"token":  {discordtest.Options{}, "other.token", "Reset Token", exitFailed},
		"switch": {discordtest.Options{Blind: true}, discordtest.Token, "Message Content Intent is off", exitFailed},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDen(t, test.options)
			t.Setenv(tokenVariable, test.token)
			if out, status := d.place.run("doctor"); status != test.status || !strings.Contains(out, test.want) {
				t.Errorf("nudge doctor (status %d, want %d) printed, without %q:\n%s", status, test.status, test.want, out)
			}
		})
	}
}

// button is the custom id of a message's button.
func (d *den) button(m discordtest.Message, label string) string {
	d.Helper()
	for _, b := range m.FirstButtons() {
		if b.Label == label {
			return b.ID
		}
	}
	d.Fatalf("%q has no button %q", m.Text, label)
	return ""
}

// TestDiscordThread talks in a thread without mentions, where a stranger decides nothing, and stops what is done there.
func TestDiscordThread(t *testing.T) {
	d := newDen(t, discordtest.Options{})
	d.start()
	d.linked(1)
	thread, _ := d.discord.Say(discordAnn, discordChannel, "<@"+discordtest.Bot+"> write notes.md saying buy milk")
	d.told(thread, "notes.md")
	d.discord.Say(discordEve, thread, "delete notes.md") // she is not served
	d.discord.Say(discordAnn, thread, "delete notes.md")
	card := d.told(thread, "May I run")
	d.discord.Click(discordEve, thread, card.ID, d.button(card, "Approve"))
	if told := d.told(thread, "not on the list"); told.For != discordEve {
		t.Errorf("%q is seen by %q", told.Text, told.For)
	}
	deny, _ := d.discord.Click(discordAnn, thread, card.ID, d.button(card, "Deny"))
	var form discordtest.Form
	eventually(t, "a form is opened", func() (open bool) { form, open = d.discord.Form(deny); return open })
	d.discord.Submit(discordAnn, form, thread, card.ID, map[string]string{form.Inputs()[0].ID: "I need it"})
	d.told(thread, "denied by <@"+discordAnn+">: I need it")
	d.discord.Say(discordAnn, thread, "wait 50 seconds")
	var stop discordtest.Message
	eventually(t, "there is a Stop button", func() bool {
		for _, m := range d.discord.ByBot(thread) {
			if b := m.Buttons(); len(b) == 1 && b[0].Label == "Stop" {
				stop = m
				return true
			}
		}
		return false
	})
	for range 2 { // an impatient person
		d.discord.Click(discordAnn, thread, stop.ID, d.button(stop, "Stop"))
	}
	d.told(thread, "Stopped")
	eventually(t, "the progress has gone", func() bool {
		for _, m := range d.discord.ByBot(thread) {
			if m.ID == stop.ID {
				return false
			}
		}
		return true
	})
	if said := d.discord.ByBot(discordChannel); len(said) > 0 {
		t.Errorf("in the channel stands %q", said[0].Text)
	}
	d.discord.Say(discordAnn, thread, "read notes.md")
	d.told(thread, "notes.md says")
	stopped := 0
	for _, m := range d.discord.ByBot(thread) {
		if strings.Contains(m.Text, "Stopped") || strings.Contains(m.Text, "Nothing is running") {
			stopped++
		}
	}
	if stopped != 1 {
		t.Errorf("it is told %d times that it was stopped", stopped)
	}
}

// TestDiscordClosedDMs shuts Ann's direct messages while her turn runs: what could not be said goes to nobody else, and
// the owner is told that once. When she writes again, she is answered.
func TestDiscordClosedDMs(t *testing.T) {
	d := newDen(t, discordtest.Options{})
	d.start()
	d.linked(1)
	dm, owner := discordtest.DM(discordAnn), discordtest.DM(discordOlga)
	d.discord.ShutDM(discordAnn, 50007)
	d.discord.Say(discordAnn, dm, "write secret.md saying 1")
	d.told(owner, "I gave up saying something in discord:local:dm:"+discordAnn)
	d.discord.Say(discordAnn, dm, "write other.md saying 2") // she has written, so she is tried again
	eventually(t, "both were tried", func() bool {
		refused := 0
		for _, c := range d.discord.Calls("message.create") {
			if c.Code == 50007 {
				refused++
			}
		}
		return refused >= 2
	})
	d.discord.ShutDM(discordAnn, 0)
	d.discord.Say(discordAnn, dm, "write third.md saying 3")
	d.told(dm, "third.md")
	told := 0
	for _, m := range d.discord.ByBot(owner) {
		told++
		if strings.Contains(m.Text, "secret.md") {
			t.Errorf("the owner reads %q", m.Text)
		}
	}
	if told != 1 {
		t.Errorf("the owner was told %d times", told)
	}
	if out, _ := d.place.run("doctor", "--quick"); !strings.Contains(out, "could not be delivered") {
		t.Errorf("the doctor says\n%s", out)
	}
}

// TestOneDiscordForOneProcess starts a second process, with another data directory, on the same token: both would answer.
func TestOneDiscordForOneProcess(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	d := newDen(t, discordtest.Options{})
	d.start()
	d.linked(1)
	t.Setenv(tokenVariable, discordtest.Token)
	config, err := os.ReadFile(d.place.config)
	if err != nil {
		t.Fatal(err)
	}
	second := newPlace(t, nil, strings.ReplaceAll(string(config), "[workspace]\nscope = \"shared\"\n", ""))
	if out, status := second.run("serve"); status != exitWrong && status != exitFailed || !strings.Contains(out, "the token from "+tokenVariable+" is in use by another nudge") {
		t.Errorf("the second process (status %d) printed:\n%s", status, out)
	}
	if n := d.discord.Identifies(); n != 1 {
		t.Errorf("%d sessions were begun", n)
	}
}

// TestDiscordWhileNothingRuns has people write while no program runs, after it was told to end and after it was killed: what
// they said is answered at the next start, once.
func TestDiscordWhileNothingRuns(t *testing.T) {
	d := newDen(t, discordtest.Options{})
	d.start()
	d.linked(1)
	dm := discordtest.DM(discordAnn)
	d.discord.Say(discordAnn, dm, "write one.md saying 1")
	d.told(dm, "one.md")
	thread, _ := d.discord.Say(discordAnn, discordChannel, "<@"+discordtest.Bot+"> write two.md saying 2")
	d.told(thread, "two.md")
	d.ended(syscall.SIGINT)
	for n, in := range []string{dm, thread} {
		d.discord.Say(discordAnn, in, fmt.Sprintf("write later-%d.md saying 3", n))
	}
	d.start()
	d.told(dm, "later-0.md")
	d.told(thread, "later-1.md")
	d.ended(syscall.SIGKILL)
	d.discord.Say(discordAnn, dm, "write last.md saying 4")
	d.discord.Say(discordOlga, discordtest.DM(discordOlga), "write first.md saying 5") // she has never written before
	d.start()
	d.told(discordtest.DM(discordOlga), "first.md")
	d.told(dm, "last.md")
	d.discord.Say(discordAnn, dm, "read one.md")
	d.told(dm, "1")
	for _, words := range []string{"one.md", "later-0.md", "last.md"} {
		said := 0
		for _, m := range d.discord.ByBot(dm) {
			if strings.Contains(discordtest.Read(m.Text), words) {
				said++
			}
		}
		if said != 1 {
			t.Errorf("%s is told of %d times", words, said)
		}
	}
}
