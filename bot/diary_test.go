package bot_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"nudge/bot"
	"nudge/memory"
	"nudge/memory/diary"
)

// newDiaryStage is newStage with a diary.
func newDiaryStage(t *testing.T) (*stage, *fake) {
	f := newFake()
	store := openStore(t)
	return serve(t, store, bot.Config{Allow: []string{"chat:*"}, Diary: diary.New(diary.Config{Store: store})}, f), f
}

var noteID = regexp.MustCompile(`\bn[a-z0-9]{7}\b`)

func TestDiaryCommands(t *testing.T) {
	s, f := newDiaryStage(t)
	s.expect(f, "/diary", "notice Nothing is remembered of you.")
	tea := noteID.FindString(s.answered(f, "/remember that I like green tea"))
	if tea == "" {
		t.Fatal("nothing was noted")
	}
	if got := s.answered(f, "/remember I like green tea."); !strings.Contains(got, "I knew that, as note "+tea) {
		t.Error(got)
	}
	bern := noteID.FindString(s.answered(f, "/remember my flat is in Bern"))
	list := s.answered(f, "/diary")
	if !strings.Contains(list, "I remember 2 notes of you.") || !strings.Contains(list, tea+"  ") || !strings.Contains(list, ", today: my flat is in Bern") {
		t.Error(list)
	}
	if got := s.answered(f, "/diary search flat"); !strings.Contains(got, bern) || strings.Contains(got, tea) {
		t.Error(got)
	}
	if got := s.answered(f, "/diary search opera"); !strings.Contains(got, "Nothing that I remember") {
		t.Error(got)
	}
	if got := s.answered(f, "/diary edit "+bern+" my flat is in Zurich"); !strings.Contains(got, "Now it says: "+bern+"  ") || !strings.Contains(got, "Zurich") {
		t.Error(got)
	}
	if got := s.answered(f, "/diary export"); !strings.Contains(got, "Zurich") || strings.Contains(got, "Bern") {
		t.Error(got)
	}
	if got := s.answered(f, "/forget "+bern); !strings.Contains(got, "Forgotten: "+bern) {
		t.Error(got)
	}
	if got := s.answered(f, "/diary delete "+tea); !strings.Contains(got, "Forgotten: "+tea) {
		t.Error(got)
	}
	s.expect(f, "/diary", "notice Nothing is remembered of you.")
	for text, want := range map[string]string{
		"/forget " + tea: "There is no note", "/forget": "Say which note", "/remember": "Say what to remember", "/remember …": "There is nothing in it",
		"/diary edit " + tea + " x": "There is no note", "/diary edit": "Say which note", "/diary search": "Say what to look for", "/diary dance": "Say /diary",
		"/remember " + strings.Repeat("a", diary.MaxText+1): "too long",
	} {
		if got := s.answered(f, text); !strings.HasPrefix(got, "error ") || !strings.Contains(got, want) {
			t.Errorf("%.60q is answered %q", text, got)
		}
	}
	if n := len(s.model.Requests()); n != 0 {
		t.Errorf("the model was asked %d times", n)
	}
}

// In a channel only what was learned there is shown, and only to the person; others' notes never are.
func TestDiaryInAChannel(t *testing.T) {
	s, f := newDiaryStage(t)
	const shared = "chat:T1:C1:7"
	said := func(from, address, text string) string {
		before := len(f.all())
		e := s.event(text)
		e.Address = address
		if from != "" {
			e.From.ID, e.From.Name = "chat:bob", "Bob"
		}
		s.receive(e)
		var texts []string
		for _, d := range f.all()[before:] {
			if address == shared && d.To == "" {
				t.Errorf("%q is answered for all to read: %q", text, d.Text)
			}
			texts = append(texts, d.Text)
		}
		return strings.Join(texts, "|")
	}
	home := s.event("").Address
	said("", home, "/remember my salary is 90")
	private := noteID.FindString(said("", home, "/diary"))
	public := noteID.FindString(said("", shared, "/remember I lead the launch"))
	if got := said("", shared, "/diary"); strings.Contains(got, "salary") || !strings.Contains(got, public) || !strings.Contains(got, "from this channel") {
		t.Error(got)
	}
	if got := said("", shared, "/diary search salary"); strings.Contains(got, "90") {
		t.Error(got)
	}
	if got := said("", home, "/diary"); !strings.Contains(got, private) || !strings.Contains(got, public) || !strings.Contains(got, "(from chat:T1:C1)") {
		t.Error(got)
	}
	for _, address := range []string{shared, "chat:local:dm:bob"} {
		if got := said("bob", address, "/diary"); !strings.Contains(got, "Nothing is remembered") {
			t.Errorf("Bob reads %q", got)
		}
	}
	e := s.event("/forget " + private)
	e.From.ID, e.Address = "chat:bob", "chat:local:dm:bob"
	s.receive(e)
	if got := said("", home, "/diary"); !strings.Contains(got, private) {
		t.Error("Bob deleted a note of Ann's")
	}
}

func TestNoDiary(t *testing.T) {
	s, f := newStage(t, "/")
	for _, text := range []string{"/diary", "/remember tea", "/forget n1234567", "/diary search tea", "/diary edit n1234567 tea"} {
		s.expect(f, text, "error There is no diary here.")
	}
}

// TestAFullDiary has Ann note more than there is room for.
func TestAFullDiary(t *testing.T) {
	s, f := newDiaryStage(t)
	err := s.store.Update(context.Background(), func(tx memory.Tx) error {
		for i := range diary.MostBytes >> 18 {
			row := fmt.Sprintf(`{"id":"nfull%03d","text":"%d%s","scope":"private"}`, i, i, strings.Repeat("a", 1<<18-200))
			if err := tx.Table("note").Put(fmt.Sprintf("%s\x00nfull%03d", ann.ID, i), []byte(row)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat(" ha", 20_000)
	small := noteID.FindString(s.answered(f, "/remember the key is under the mat"))
	for _, text := range []string{"/remember" + long, "/diary edit " + small + long} {
		if got := s.answered(f, text); !strings.HasPrefix(got, "error No more fits into the diary") {
			t.Errorf("%.20s: %.200s", text, got)
		}
	}
	s.answered(f, "/forget nfull000")
	if got := s.answered(f, "/remember"+long); !strings.HasPrefix(got, "notice Noted as") {
		t.Errorf("in the place of one that is forgotten: %.200s", got)
	}
}
