package web

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model"
	"nudge/memory/diary"
	"nudge/schedule"
)

const chromiumPath = "/usr/bin/chromium"

// chromium starts a browser that knows nothing and calls nobody.
func chromium(t *testing.T) context.Context {
	t.Helper()
	if _, err := exec.LookPath(chromiumPath); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("there is no chromium, without which the page is not tested")
		}
		t.Skip("there is no chromium here")
	}
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(chromiumPath), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1180, 900),
	}
	for _, flag := range []string{"disable-quic", "disable-background-networking", "disable-component-update", "disable-sync"} {
		options = append(options, chromedp.Flag(flag, true))
	}
	allocator, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, _ := chromedp.NewContext(allocator)
	t.Cleanup(func() { _ = chromedp.Cancel(ctx) })
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatalf("start chromium: %v", err)
	}
	return ctx
}

// page is a tab of a real browser.
type page struct {
	t   *testing.T
	ctx context.Context

	mu     sync.Mutex
	faults []string // what the browser complained about
}

// newPage opens an address in a tab of its own. Errors in the page, and what its policy forbids, fail the test.
func newPage(t *testing.T, browser context.Context, address string) *page {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	p := &page{t: t, ctx: ctx}
	err := chromedp.Listen(ctx, func(ev any) {
		fault := ""
		switch ev := ev.(type) {
		case *runtime.EventExceptionThrown:
			fault = ev.ExceptionDetails.Text
			if ev.ExceptionDetails.Exception != nil {
				fault = ev.ExceptionDetails.Exception.Description
			}
		case *log.EventEntryAdded:
			// A server that restarts is no fault of the page.
			if ev.Entry.Level == "error" && ev.Entry.Source != "network" {
				fault = ev.Entry.Text
			}
		}
		if fault != "" {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.faults = append(p.faults, fault)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.mu.Lock()
		faults := p.faults
		p.mu.Unlock()
		if len(faults) > 0 {
			t.Errorf("the page is at fault: %q", faults)
		}
		cancel()
	})
	p.do(chromedp.Navigate(address))
	return p
}

func (p *page) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.shoot("failed")
		p.t.Fatal(err)
	}
}

// eval is the value of an expression in the page.
func eval[T any](p *page, expression string) T {
	p.t.Helper()
	value, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// until waits until an expression in the page is true.
func (p *page) until(expression string) {
	p.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for !eval[bool](p, "Boolean("+expression+")") {
		select {
		case <-look.C:
		case <-deadline.C:
			p.shoot("failed")
			p.t.Fatalf("waited in vain for %s; the page says:\n%s", expression, eval[string](p, "document.body.innerText"))
		}
	}
}

// js is a text as a literal.
func js(text string) string {
	data, _ := json.Marshal(text)
	return string(data)
}

// sees waits until something holds a text.
func (p *page) sees(selector, text string) {
	p.t.Helper()
	p.until(fmt.Sprintf("[...document.querySelectorAll(%s)].some(e => e.innerText.includes(%s))", js(selector), js(text)))
}

// press clicks the button with a text that is inside of something.
func (p *page) press(within, text string) {
	p.t.Helper()
	find := fmt.Sprintf("[...document.querySelectorAll(%s)].find(e => e.textContent.trim().startsWith(%s) && !e.disabled && e.offsetParent)", js(within+" button"), js(text))
	p.until(find)
	eval[any](p, "void "+find+".click()")
}

// ticks sets the checkbox with some words beside it, or takes it back.
func (p *page) ticks(words string) {
	p.t.Helper()
	find := fmt.Sprintf("[...document.querySelectorAll('.card .form label')].find(e => e.textContent === %s)", js(words))
	p.until(find)
	eval[any](p, "void "+find+".click()")
}

// types says something with the keyboard.
func (p *page) types(text string) {
	p.t.Helper()
	p.do(chromedp.Focus("#words"), chromedp.KeyEvent(text), enter)
}

// enter presses Enter as keyboards do: the character comes with the key, so that a page can keep it back.
func enter(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
	key := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: "Enter", Code: "Enter", Text: "\r", WindowsVirtualKeyCode: 13}
	_, err := cdp.Call(ctx, t, input.DispatchKeyEvent, key)
	if err == nil {
		key.Type, key.Text = input.DispatchKeyEventTypeKeyUp, ""
		_, err = cdp.Call(ctx, t, input.DispatchKeyEvent, key)
	}
	return chromedp.Void{}, err
}

// shoot takes a picture if somebody asked for pictures.
func (p *page) shoot(name string) {
	folder := os.Getenv("NUDGE_SCREENSHOTS")
	if folder == "" {
		return
	}
	picture, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Errorf("take a picture of %s: %v", name, err)
		return
	}
	if err := os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o600); err != nil {
		p.t.Error(err)
	}
}

// scheme lets the page be dark or light.
func (p *page) scheme(name string) {
	p.t.Helper()
	p.do(func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
		})
		return chromedp.Void{}, err
	})
}

// TestPage walks through what a newcomer tries, in a real browser.
func TestPage(t *testing.T) {
	p := startProgram(t, nil)
	browser := chromium(t)
	page := newPage(t, browser, p.server.URL())

	page.until("!document.getElementById('empty').hidden")
	page.sees("#link-text", "live")
	if at := eval[string](page, "location.href"); strings.Contains(at, "token") {
		t.Errorf("the token stays in the address: %s", at)
	}
	if n := eval[int](page, "document.querySelectorAll('#examples button').length"); n < 4 || n > 6 {
		t.Errorf("%d examples are offered", n)
	}
	page.shoot("01-empty")

	page.press("#examples", "write notes.md")
	page.sees(".said", "write notes.md saying buy milk")
	page.sees(".final", "notes.md")
	await(t, "notes.md is written", func() bool { return p.exists("notes.md") })
	page.until("document.getElementById('stop').hidden")

	page.denies(p)
	page.approves(p)
	page.corrects(p)
	page.stops(p)

	p.tell(agent.Reply{Kind: agent.Notify, Heartbeat: "stretch", Text: "Time to **stretch** your legs.", Address: home})
	page.sees(".ping", "Ping: stretch")
	page.sees(".ping strong", "stretch")

	page.judges(p)

	second := newPage(t, browser, "http://"+p.server.Address()+"/")
	second.sees(".said", "write notes.md saying buy milk")
	second.sees(".ping .outcome", "stretch speaks to you at most every hour")
	second.sees(".ping:last-of-type .outcome", "Snoozed until ")
	second.types("how full is the disk?")
	page.sees(".said", "how full is the disk?")
	page.sees(".final", "43%")
	second.sees(".final", "43%")
	page.until("document.getElementById('stop').hidden")
	page.shoot("06-conversation")
	page.scheme("dark")
	page.shoot("07-dark")
}

// judges says what it makes of pings, a reminder and a digest among them.
func (page *page) judges(p *program) {
	page.t.Helper()
	p.reminder("Call Bob.")
	page.sees(".ping:last-of-type", "Call Bob.")
	page.until(`[...document.querySelectorAll('.ping:last-of-type button')].map(b => b.textContent).join() === 'Useful,Snooze'`)
	p.tellCard(schedule.Card{Digest: []string{"stretch", "drink"}, Text: "Held back until now:\n\n- stretch\n- drink"})
	page.sees(".ping:last-of-type h3", "Held back until now")
	page.press(".ping:last-of-type", "Less of this")
	page.sees(".ping:last-of-type .outcome", "stretch speaks to you at most every hour. drink speaks to you at most every hour.")
	p.ping("stretch", "Time to **stretch** again.")
	page.sees(".ping:last-of-type", "Useful")
	page.press(".ping:last-of-type", "Less of this")
	page.sees(".ping:last-of-type .outcome", "stretch speaks to you at most every 2 hours")
	p.ping("drink", "Time to drink.")
	page.press(".ping:last-of-type", "Snooze")
	page.press(".ping:last-of-type", "For 4 hours")
	page.sees(".ping:last-of-type .outcome", "Snoozed until ")
	page.shoot("05-ping")
}

// denies refuses a deletion with a reason, by keyboard.
func (page *page) denies(p *program) {
	page.t.Helper()
	page.types("delete notes.md")
	page.sees(".card", "delete_file")
	page.sees(".card pre", `"path": "notes.md"`)
	page.sees(".card .until", "You may decide until")
	page.sees("#waiting", "1 waits for you")
	page.shoot("02-card")
	page.press(".card", "Deny")
	page.until("document.activeElement.matches('.card input')")
	page.do(chromedp.KeyEvent("I still need it"))
	page.shoot("03-deny")
	page.do(enter)
	page.sees(".card.settled .outcome", "Denied by you")
	page.sees(".card.settled .outcome", "I still need it")
	page.sees(".final", "I still need it")
	page.until("document.getElementById('waiting').hidden && document.activeElement.id === 'words'")
	if !p.exists("notes.md") {
		page.t.Error("a denied call ran")
	}
}

// approves edits the next card's arguments into nonsense, then into another file.
func (page *page) approves(p *program) {
	page.t.Helper()
	p.write("other.md", "something else")
	page.types("delete notes.md")
	page.until("document.querySelector('.card:not(.settled)')")
	page.press(".card:not(.settled)", "Edit")
	page.sees(".card:not(.settled) form", "path")
	page.shoot("04-edit")
	page.press(".card:not(.settled)", "Edit as JSON")
	page.until("document.activeElement.matches('.card textarea')")
	page.do(chromedp.SetValue(".card:not(.settled) textarea", `{"path": `))
	page.press(".card:not(.settled)", "Approve with changes")
	page.sees(".card:not(.settled) .fault", "not JSON")
	page.do(chromedp.SetValue(".card:not(.settled) textarea", `{"file": "other.md"}`))
	page.press(".card:not(.settled)", "Approve with changes")
	page.sees(".card:not(.settled) form .fault", "do not fit")
	page.shoot("04-edit-json")
	page.do(chromedp.SetValue(".card:not(.settled) textarea", `{"path": "other.md"}`))
	page.press(".card:not(.settled)", "Approve with changes")
	page.sees(".card.settled .outcome", "Approved with changes by you")
	await(page.t, "the other file is gone", func() bool { return !p.exists("other.md") })
	page.until("document.getElementById('stop').hidden")
	page.types("delete notes.md")
	page.press(".card:not(.settled)", "Always allow this…")
	page.sees(".card:not(.settled) .form", "From now on exactly this call and no other runs without a card, for you alone and in direct messages, until ")
	page.shoot("04-always")
	page.press(".card:not(.settled)", "Back")
	page.until("document.activeElement.textContent === 'Always allow this…'")
	page.press(".card:not(.settled)", "Always allow this…")
	page.press(".card:not(.settled)", "Always allow")
	page.sees(".card.settled:last-of-type .outcome", "Approved, and always allowed by you")
	await(page.t, "notes.md is gone", func() bool { return !p.exists("notes.md") })
	page.until("document.getElementById('stop').hidden && !document.querySelector('.card:not(.settled)')")
	page.types("/approvals revoke all")
	page.until("document.body.textContent.includes('Revoked: 1 rule')")
}

// corrects says something else while it works.
func (page *page) corrects(p *program) {
	page.t.Helper()
	p.write("notes.md", "buy milk")
	page.types("wait 10 seconds and then delete notes.md")
	page.until("!document.getElementById('stop').hidden && !document.getElementById('working').hidden")
	page.sees(".steps", "run_command")
	page.types("no, write better.md saying keep it")
	page.sees(".said:last-of-type .receipt, .receipt.stored", "noted")
	page.shoot("05-correction")
	p.write("go", "")
	page.sees(".receipt.seen", "seen at step 2")
	await(page.t, "the correction is done", func() bool { return p.exists("better.md") })
	page.until("document.getElementById('stop').hidden")
	if !p.exists("notes.md") {
		page.t.Error("what was corrected was done all the same")
	}
	_ = os.Remove(filepath.Join(p.folder, "go"))
}

// stops presses Escape while it works, and the button while it waits.
func (page *page) stops(p *program) {
	page.t.Helper()
	page.types("wait 10 seconds")
	page.until("!document.getElementById('stop').hidden")
	page.do(chromedp.Focus("#words"), chromedp.KeyEvent(kb.Escape))
	page.sees(".notice", "Stopped")
	page.until("document.getElementById('stop').hidden")
	page.types("delete notes.md")
	page.until("document.querySelector('.card:not(.settled)')")
	page.press(".composer", "Stop")
	page.sees(".card.settled .outcome", "Withdrawn")
	page.until("document.getElementById('stop').hidden")
	if !p.exists("notes.md") {
		page.t.Error("a stopped turn deleted something")
	}
}

// TestOffer lets a turn go on that a limit has ended, by the button, in a page that came later.
func TestOffer(t *testing.T) {
	p := startProgram(t, nil)
	p.end()
	p.limits = agent.Limits{Steps: 1}
	p.start()
	browser := chromium(t)
	page := newPage(t, browser, p.server.URL())
	page.types("how full is the disk?")
	page.sees(".card.offer", "after 1 step")
	later := newPage(t, browser, "http://"+p.server.Address()+"/")
	later.sees(".card.offer", "Say continue")
	later.until("document.getElementById('waiting').hidden")
	later.shoot("08-offer")
	later.press(".card.offer", "Continue")
	later.sees(".card.offer.settled .outcome", "Goes on by you")
	later.sees(".final", "43%")
	page.sees(".card.offer.settled .outcome", "Goes on")
	page.sees(".final", "43%")
}

// TestBatch decides three cards by two buttons of the last, in a page that came later and does not have to know the others.
func TestBatch(t *testing.T) {
	p := startProgram(t, nil)
	p.end()
	p.model = &agenttest.Model{T: t, Script: func(req model.Request) model.Answer {
		if len(agenttest.Results(req)) > 0 {
			return agenttest.Say("cleared")
		}
		var calls []model.Call
		for i, name := range []string{"a.md", "b.md", "c.md"} {
			calls = append(calls, agenttest.Call(len(req.Messages)+i, "delete_file", fmt.Sprintf(`{"path":%q}`, name)))
		}
		return agenttest.Do(calls...)
	}}
	p.start()
	for _, name := range []string{"a.md", "b.md", "c.md"} {
		p.write(name, "x")
	}
	browser := chromium(t)
	first := newPage(t, browser, p.server.URL())
	first.types("clear it")
	first.sees(".card:last-of-type", "All 3 of these at once:")
	first.sees(".card:last-of-type", `2) {"path":"b.md"}`)
	later := newPage(t, browser, "http://"+p.server.Address()+"/")
	later.sees(".card:last-of-type", "Deny all 3")
	later.shoot("09-batch")
	later.press(".card:last-of-type", "Approve all 3")
	for _, tab := range []*page{first, later} {
		tab.until("document.querySelectorAll('.card.settled').length === 3")
		tab.sees(".final", "cleared")
	}
	if p.exists("a.md") || p.exists("b.md") || p.exists("c.md") {
		t.Error("not all of what was approved was deleted")
	}
}

// TestLeftOpen lets a version be any, in the form of a card: nothing is left open at first, and what is said of it
// follows the choice.
func TestLeftOpen(t *testing.T) {
	p := startProgram(t, nil)
	p.end()
	p.model = deploys(t)
	p.start()
	browser := chromium(t)
	page := newPage(t, browser, p.server.URL())
	page.types("v1.2")
	page.press(".card:not(.settled)", "Always allow this…")
	page.sees(".card:not(.settled) .form", "From now on exactly this call and no other runs without a card")
	if n := eval[int](page, "document.querySelectorAll('.card .form input[type=checkbox]').length * 10 + document.querySelectorAll('.card .form input:checked').length"); n != 20 {
		t.Errorf("there are %d checkboxes and %d of them are set", n/10, n%10)
	}
	page.sees(".card .form fieldset", "any env of staging, production")
	page.ticks("any version that matches v[0-9.<]+")
	page.sees(".card:not(.settled) .form", "each that differs from it in nothing but what is left open, for you alone")
	page.shoot("10-open")
	page.ticks("any version that matches v[0-9.<]+")
	page.sees(".card:not(.settled) .form", "From now on exactly this call")
	page.ticks("any version that matches v[0-9.<]+")
	page.press(".card:not(.settled)", "Always allow")
	page.sees(".card.settled .outcome", "Approved, and always allowed by you")
	page.sees(".card.settled .outcome", ", with any version that matches v[0-9.<]+ until ")
	page.sees(".final", "deployed v1.2 to staging")
	page.types("v2.0")
	page.sees(".final:last-of-type", "deployed v2.0 to staging")
	later := newPage(t, browser, "http://"+p.server.Address()+"/")
	later.sees(".card.settled .outcome", ", with any version that matches v[0-9.<]+ until ")
}

// TestNarrowPage looks at the page on a small telephone: nothing may stand out at the side.
func TestNarrowPage(t *testing.T) {
	p := startProgram(t, nil)
	p.write("notes.md", "buy milk")
	browser := chromium(t)
	page := newPage(t, browser, "about:blank")
	page.do(chromedp.EmulateViewport(400, 780, chromedp.EmulateMobile), chromedp.Navigate("http://"+p.server.Address()+"/"))
	page.sees("h1", "signed in")
	page.shoot("09-narrow-signin")
	page.do(chromedp.Navigate(p.server.URL()))
	page.until("!document.getElementById('empty').hidden")
	page.shoot("10-narrow-empty")
	page.types("delete notes.md")
	page.until("document.querySelector('.card:not(.settled)')")
	wide := strings.Repeat("wide", 60)
	p.tell(agent.Reply{Kind: agent.Final, Turn: "t1", Address: home, Text: "| a | b | c |\n|---|---|---|\n| " + wide + " | x | y |\n\n```go\n" + wide + "\n```\n\n" + wide})
	page.sees(".final", "wide")
	if over := eval[int](page, "document.documentElement.scrollWidth - document.documentElement.clientWidth"); over > 0 {
		t.Errorf("the page is %d pixels wider than the screen", over)
	}
	if over := eval[int](page, "document.getElementById('scroll').scrollWidth - document.getElementById('scroll').clientWidth"); over > 0 {
		t.Errorf("the conversation is %d pixels wider than the screen", over)
	}
	page.shoot("11-narrow")
	page.press(".top", "☰")
	page.until("document.activeElement.id === 'side-close'")
	page.sees("#sessions", "delete notes.md")
	page.shoot("12-narrow-side")
	page.do(chromedp.KeyEvent(kb.Escape))
	page.until("document.activeElement.id === 'side-open'")
	page.scheme("dark")
	page.shoot("13-narrow-dark")

	if _, _, err := p.config.Diary.Remember(t.Context(), "web:me", diary.Note{Text: "A long note: " + wide, Scope: diary.Private}); err != nil {
		t.Fatal(err)
	}
	page.press(".top", "☰")
	page.press(".side", "Diary")
	page.sees(".note-text", "A long note")
	if over := eval[int](page, "document.getElementById('diary').scrollWidth - document.getElementById('diary').clientWidth"); over > 0 {
		t.Errorf("the diary is %d pixels wider than its place", over)
	}
	page.shoot("14-narrow-diary")
	page.do(chromedp.KeyEvent(kb.Escape))
	page.until("!document.getElementById('diary').open")
}

// TestPageParts goes through what the first walk leaves out: plans, questions, heartbeats, other sessions, and a server
// that goes away and comes back.
func TestPageParts(t *testing.T) {
	p := startProgram(t, nil)
	page := newPage(t, chromium(t), p.server.URL())
	page.until("!document.getElementById('empty').hidden")
	page.types("plan: list the files; write list.md saying done; read list.md")
	page.sees(".plan", "3 of 3 done")
	page.sees(".final", "list.md")
	page.until("document.getElementById('stop').hidden")
	if n := eval[int](page, "document.querySelectorAll('.plan').length"); n != 1 {
		t.Errorf("there are %d plans", n)
	}
	page.shoot("20-plan")

	page.types("ask me whether I want tea or coffee")
	page.until("document.querySelectorAll('.card:not(.settled) .buttons button').length >= 3")
	page.shoot("21-question")
	page.press(".card:not(.settled)", eval[string](page, "document.querySelector('.card:not(.settled) .buttons button').textContent"))
	page.sees(".card.settled .outcome", "Answered by you")
	page.until("document.getElementById('stop').hidden")
	page.types("ask me whether I want tea or coffee")
	page.until("document.querySelector('.card:not(.settled) input')")
	page.do(chromedp.Focus(".card:not(.settled) input"), chromedp.KeyEvent("cocoa"), enter)
	page.sees(".card.settled .outcome", "cocoa")
	page.until("document.getElementById('stop').hidden")

	page.types("remind me every minute to stretch")
	page.sees(".card:not(.settled)", "Shall I save this heartbeat?")
	page.sees(".card:not(.settled) .text", "The next times")
	page.until("state.waiting")
	page.shoot("22-heartbeat")
	page.press(".card:not(.settled)", "Edit")
	page.until("document.querySelector('.card:not(.settled) textarea.json')") // an object inside is no field
	page.do(chromedp.KeyEvent(kb.Escape))
	page.until("document.activeElement.textContent === 'Edit'")
	page.goesAway(p)
	page.sessions()
	page.types("/help")
	page.sees(".notice", "/resume NUMBER")
	page.types("/nonsense")
	page.sees(".fault", "There is no command")
	page.shoot("24-commands")
}

// goesAway restarts the server under the page, which shows the same afterwards, and can go on.
func (page *page) goesAway(p *program) {
	page.t.Helper()
	before := eval[int](page, "document.querySelectorAll('.said, .final, .card').length")
	eval[bool](page, "document.querySelectorAll('.said').forEach(e => e.dataset.old = true), true")
	p.restart()
	// The page may not have noticed yet. It draws everything anew when it is there again.
	page.until("document.getElementById('link').classList.contains('live') && document.querySelectorAll('.said').length && !document.querySelector('[data-old]')")
	page.until(fmt.Sprintf("document.querySelectorAll('.said, .final, .card').length === %d", before))
	if eval[bool](page, "document.getElementById('stop').hidden") {
		page.t.Error("a turn that waits has no Stop after a restart")
	}
	page.press(".card:not(.settled)", "Cancel")
	page.until("!document.querySelector('.card:not(.settled)') && document.getElementById('stop').hidden")
	page.shoot("23-after-restart")
}

// sessions begins another session and comes back.
func (page *page) sessions() {
	page.t.Helper()
	page.press(".side", "New conversation")
	page.until("!document.getElementById('empty').hidden && !document.querySelector('.said')")
	page.types("how full is the disk?")
	page.sees(".final", "43%")
	page.until("document.querySelectorAll('#sessions button').length === 2")
	page.sees("#heading", "how full is the disk?")
	page.press("#sessions", "plan: list the files")
	page.sees(".said", "ask me whether")
	page.until("document.querySelector('#sessions [aria-current]').dataset.number === '1'")
	page.shoot("25-sessions")
}
