package web

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"nudge/memory/diary"
)

// TestDiaryPage tells the demo model something, asks for it in other words in a new conversation, finds it in the diary,
// changes and deletes it there, and hears that it is not known any more.
func TestDiaryPage(t *testing.T) {
	p := startProgram(t, nil)
	page := newPage(t, chromium(t), p.server.URL())
	page.types("remember that my daughter Mia plays the violin")
	page.sees(".final", "noted as")
	page.sees(".final", "a language model writes better ones")
	page.press(".side", "New conversation")
	page.until("!document.querySelector('.said')")
	page.types("what do you know about my kid?")
	page.sees(".final", "My daughter Mia plays the violin")

	page.press(".side", "Diary")
	page.until("document.getElementById('diary').open")
	page.sees(".note-text", "My daughter Mia plays the violin")
	page.sees(".note-marks", "also found by: ")
	page.sees("#diary-state", "1 note")
	page.shoot("30-diary")
	page.do(chromedp.Focus("#diary-words"), chromedp.KeyEvent("opera"), enter)
	page.sees("#diary-state", "Nothing that is remembered has anything of that")
	eval[any](page, "void (document.getElementById('diary-words').value = '')")
	page.do(chromedp.Focus("#diary-words"), chromedp.KeyEvent("child"), enter)
	page.sees(".note-text", "violin")

	page.press(".note", "Edit")
	eval[any](page, "void (document.querySelector('.note textarea').value = 'My daughter Mia plays the cello')")
	page.press(".note", "Save")
	page.sees(".note-text", "cello")
	page.press(".note", "Delete")
	page.press(".note", "Keep it")
	page.press(".note", "Delete")
	page.press(".note", "Delete for good")
	page.until("!document.querySelector('.note')")
	page.do(chromedp.KeyEvent("\u001b"), chromedp.KeyEvent("\u001b")) // the first empties the search
	page.until("!document.getElementById('diary').open")

	page.press(".side", "New conversation")
	page.until("!document.querySelector('.said')")
	page.types("what do you know about my kid?")
	page.sees(".final", "nothing is remembered of you yet")
}

// The diary is for who is signed in, and changes come from the page alone.
func TestDiaryGuards(t *testing.T) {
	p := startProgram(t, nil)
	n, _, err := p.config.Diary.Remember(t.Context(), "web:me", diary.Note{Text: "the word is heliotrope", Scope: diary.Private})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.config.Diary.Remember(t.Context(), "terminal:bob", diary.Note{Text: "the word of another", Scope: diary.Private}); err != nil {
		t.Fatal(err)
	}
	ask := func(method, path string, body any, change func(*http.Request)) (int, string) {
		var text strings.Builder
		if body != nil {
			_ = json.NewEncoder(&text).Encode(body)
		}
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+p.server.Address()+path, strings.NewReader(text.String()))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Origin", "http://"+p.server.Address())
		req.AddCookie(&http.Cookie{Name: p.server.cookieName(), Value: p.server.cookieValue()})
		if change != nil {
			change(req)
		}
		res, said := send(t, req)
		return res.StatusCode, said
	}
	remove := map[string]any{"id": "12345678", "note": n.ID}
	for name, test := range map[string]struct {
		method, path string
		body         any
		change       func(*http.Request)
		want         int
	}{
		"no cookie":          {"GET", "/api/diary", nil, without("Cookie"), 401},
		"delete by GET":      {"GET", "/api/diary/note", nil, nil, 405},
		"another's page":     {"POST", "/api/diary/note", remove, with("Origin", "http://evil.test"), 403},
		"delete, no cookie":  {"POST", "/api/diary/note", remove, without("Cookie"), 401},
		"another's host":     {"GET", "/api/diary", nil, host("evil.test"), 403},
		"an edit to nothing": {"POST", "/api/diary/note", map[string]any{"id": "12345678", "note": n.ID, "text": " "}, nil, 400},
		"no such note":       {"POST", "/api/diary/note", map[string]any{"id": "12345678", "note": "n7654321", "text": "x"}, nil, 404},
	} {
		if status, said := ask(test.method, test.path, test.body, test.change); status != test.want || strings.Contains(said, "heliotrope") {
			t.Errorf("%s: %d %s", name, status, said)
		}
	}
	status, said := ask("GET", "/api/diary?download", nil, nil)
	if status != 200 || !strings.Contains(said, "heliotrope") || strings.Contains(said, "another") {
		t.Errorf("%d %s", status, said)
	}
	for range 2 { // pressed twice
		if status, said := ask("POST", "/api/diary/note", remove, nil); status != 200 {
			t.Errorf("delete: %d %s", status, said)
		}
	}
	if _, said := ask("GET", "/api/diary", nil, nil); said != "{\"notes\":[]}\n" {
		t.Error(said)
	}
}
