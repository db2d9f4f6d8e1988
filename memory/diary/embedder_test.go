package diary

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"nudge/memory"
)

// server answers as OpenAI's embeddings do, with vectors that the local embedder makes.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	requests int
	inputs   []string
	longest  int                                                                   // runes; longer texts are refused; 0 means none are
	answer   func(w http.ResponseWriter, texts []string, vectors [][]float32) bool // if set, may answer in another way
}

func newServer(t testing.TB) *server {
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Model string
		Input []string
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.URL.Path != "/v1/embeddings" || r.Header.Get("Authorization") != "Bearer k" || body.Model != "m" {
		http.Error(w, "wrong request", http.StatusNotFound)
		return
	}
	s.mu.Lock()
	s.requests++
	s.inputs = append(s.inputs, body.Input...)
	longest, answer := s.longest, s.answer
	s.mu.Unlock()
	for _, text := range body.Input {
		if longest > 0 && utf8.RuneCountInString(text) > longest {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error":"the input length exceeds the context length"}`)
			return
		}
	}
	vectors, _ := Local().Embed(r.Context(), body.Input)
	if answer == nil || !answer(w, body.Input, vectors) {
		write(w, vectors, func(i int) int { return i })
	}
}

// write answers with vectors, the last first; index says for which text each is.
func write(w http.ResponseWriter, vectors [][]float32, index func(int) int) {
	type datum struct {
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	}
	var data []datum
	for i := len(vectors) - 1; i >= 0; i-- {
		data = append(data, datum{index(i), vectors[i]})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
}

func (s *server) embedder(t testing.TB) Embedder {
	t.Helper()
	e, err := OpenAI(OpenAIConfig{BaseURL: s.URL + "/v1/", Name: "m", Key: "k", HTTP: s.Client()})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestEmbedders is what every embedder does.
func TestEmbedders(t *testing.T) {
	for name, e := range map[string]Embedder{"local": Local(), "openai": newServer(t).embedder(t)} {
		t.Run(name, func(t *testing.T) {
			var texts []string
			for i := range 150 { // more than one request
				texts = append(texts, fmt.Sprintf("note number %d about tea", i))
			}
			texts = append(texts, "", "the of", "漢字", "🏷️", strings.Repeat("word ", 5000))
			vectors, err := embedAll(t.Context(), e, texts)
			if err != nil || len(vectors) != len(texts) {
				t.Fatalf("%d vectors for %d texts: %v", len(vectors), len(texts), err)
			}
			again, err := embedAll(t.Context(), e, []string{texts[7]})
			if err != nil || cosine(again[0], vectors[7]) < 0.999 {
				t.Errorf("the same text has another vector, or that of another text: %v", err)
			}
			if near, far := cosine(vectors[7], vectors[8]), cosine(vectors[7], vectors[152]); near <= far {
				t.Errorf("a text like it is at %.2f and one that is not at %.2f", near, far)
			}
			if e.Model() == "" || e.Score(0) != 0 || e.Score(-1) != 0 || e.Score(1) > 1 {
				t.Errorf("model %q, scores %.2f, %.2f, %.2f", e.Model(), e.Score(0), e.Score(-1), e.Score(1))
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := e.Embed(ended, texts); !errors.Is(err, context.Canceled) {
				t.Errorf("after the end: %v", err)
			}
		})
	}
}

func cosine(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// Vectors that cannot be used are refused, and the note is kept and found by its words.
func TestBadVectors(t *testing.T) {
	for name, answer := range map[string]func(w http.ResponseWriter, texts []string, vectors [][]float32) bool{
		"zero": func(w http.ResponseWriter, _ []string, v [][]float32) bool { clear(v[0]); return false },
		"too few": func(w http.ResponseWriter, _ []string, v [][]float32) bool {
			write(w, v[1:], func(i int) int { return i })
			return true
		},
		"two for one": func(w http.ResponseWriter, _ []string, v [][]float32) bool {
			write(w, v, func(int) int { return 0 })
			return len(v) > 1
		},
		"out of range": func(w http.ResponseWriter, _ []string, v [][]float32) bool {
			write(w, v, func(i int) int { return i + 1 })
			return true
		},
		"no JSON": func(w http.ResponseWriter, _ []string, _ [][]float32) bool { fmt.Fprint(w, "<html>"); return true },
		"NaN": func(w http.ResponseWriter, _ []string, _ [][]float32) bool {
			fmt.Fprint(w, `{"data":[{"index":0,"embedding":[NaN]}]}`)
			return true
		},
		"no numbers": func(w http.ResponseWriter, _ []string, _ [][]float32) bool {
			fmt.Fprint(w, `{"data":[{"index":0}]}`)
			return true
		},
		"overflowing": func(w http.ResponseWriter, _ []string, _ [][]float32) bool {
			fmt.Fprint(w, `{"data":[{"index":0,"embedding":[1e39]}]}`)
			return true
		},
		"an error": func(w http.ResponseWriter, _ []string, _ [][]float32) bool {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return true
		},
		"a bad request": func(w http.ResponseWriter, _ []string, _ [][]float32) bool {
			http.Error(w, "no such model", http.StatusBadRequest)
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.answer = answer
			d := newDiary(t, Config{Embedder: s.embedder(t)})
			remember(t, d, ann, Note{Text: "Likes green tea"})
			if name != "two for one" { // of one text there cannot be two
				if left := left(t, d); left != 1 {
					t.Errorf("%d notes lack a vector", left)
				}
			}
			hits, err := d.Recall(t.Context(), annPrivate, []string{"tea"}, 10)
			if err != nil || len(hits) != 1 || math.IsNaN(hits[0].Score) {
				t.Errorf("found are %+v, %v", hits, err)
			}
		})
	}
}

// Batch replies are matched by their indexes: write gives the last first.
func TestSwappedReplies(t *testing.T) {
	e := newServer(t).embedder(t)
	texts := []string{"green tea", "fast train", "old castle"}
	vectors, err := e.Embed(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := Local().Embed(t.Context(), texts)
	for i := range texts {
		if cosine(vectors[i], want[i]) < 0.999 {
			t.Errorf("%q has the vector of another", texts[i])
		}
	}
}

// Vectors of another length than the query's, or unsound ones in the data file, break no search.
func TestUnfitVectorsInTheFile(t *testing.T) {
	d := newDiary(t, Config{})
	for i, v := range [][]float32{{1, 0, 0}, {float32(math.NaN()), 0, 0}, {0, 0, 0}, {1, 0}} {
		draft, err := d.Draft(t.Context(), Note{Text: fmt.Sprintf("tea note %d", i), Scope: Private})
		if err != nil {
			t.Fatal(err)
		}
		draft.vectors = [][]float32{v}
		if err := d.Store.Update(t.Context(), func(tx memory.Tx) error {
			_, _, err := d.Put(tx, ann, draft)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	hits, err := d.Recall(t.Context(), annPrivate, []string{"tea note"}, 10)
	if err != nil || len(hits) != 4 {
		t.Errorf("%+v, %v", hits, err)
	}
	for _, h := range hits {
		if math.IsNaN(h.Score) || h.Score < d.MinScore {
			t.Errorf("%q has the score %v", h.Text, h.Score)
		}
	}
}

// A long note is one note, found by a phrase from anywhere in it, whatever length the embedder takes.
func TestLongNotes(t *testing.T) {
	s := newServer(t)
	s.longest = 2048
	d := newDiary(t, Config{Embedder: s.embedder(t)})
	for name, text := range map[string]string{
		"one word": "aaaaaaaaaaaaaaaaaaaa", "words": "kickoff " + strings.Repeat("word ", 20000) + "halfway " + strings.Repeat("word ", 20000) + "finale",
		"characters": "最初 " + strings.Repeat("漢字", 5000) + " 中央 " + strings.Repeat("漢字", 5000) + " 最後",
		"digits":     strings.Repeat("1", 9000), "emoji": strings.Repeat("🏷️", 3000),
	} {
		before := s.requests
		n, _ := remember(t, d, "slack:T1:"+name, Note{Text: text})
		if n.Text != text {
			t.Errorf("%s: the text was changed", name)
		}
		if asked := s.requests - before; asked > mostHalvings+3 {
			t.Errorf("%s: %d requests were made", name, asked)
		}
		for _, input := range s.inputs {
			if !utf8.ValidString(input) {
				t.Fatalf("%s: what is asked for is no valid text", name)
			}
		}
		if left := left(t, d); left != 0 {
			t.Errorf("%s: %d notes lack a vector", name, left)
		}
		v := View{"slack:T1:" + name, Private}
		queries := []string{string([]rune(text)[:8])}
		switch name {
		case "words":
			queries = []string{"kickoff", "halfway", "finale"}
		case "characters":
			queries = []string{"最初", "中央", "最後"}
		case "one word", "digits":
			queries = []string{text}
		}
		for _, q := range queries {
			if got := recall(t, d, v, q); len(got) != 1 {
				t.Errorf("%s: %.20q finds %d notes", name, q, len(got))
			}
		}
		if err := remove(t, d, v, n.ID); err != nil {
			t.Fatal(err)
		}
		if got := recall(t, d, v, queries[0]); len(got) != 0 {
			t.Errorf("%s: deleted and found", name)
		}
	}
}

// An embedder that takes nothing is asked a few times and no more.
func TestHalvingEnds(t *testing.T) {
	s := newServer(t)
	s.longest = 1
	d := newDiary(t, Config{Embedder: s.embedder(t)})
	remember(t, d, ann, Note{Text: strings.Repeat("word ", 1000) + "omega"})
	if s.requests > mostHalvings+1 {
		t.Errorf("%d requests", s.requests)
	}
	if n, err := d.Renew(t.Context()); err != nil || n != 1 {
		t.Errorf("renewed %d, %v", n, err)
	}
	if left := left(t, d); left != 0 {
		t.Errorf("a note of which no vector can be made is tried for ever: %d", left)
	}
}

// While the embedder is down notes are written and found by their words; it is not asked at each search.
func TestDown(t *testing.T) {
	s := newServer(t)
	s.answer = func(w http.ResponseWriter, _ []string, _ [][]float32) bool {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return true
	}
	d := newDiary(t, Config{Embedder: s.embedder(t)})
	remember(t, d, ann, Note{Text: "Likes green tea", Aliases: []string{"beverage"}})
	asked := s.requests
	for range 5 {
		if got := recall(t, d, annPrivate, "beverage"); len(got) != 1 {
			t.Fatal(got)
		}
	}
	if s.requests != asked {
		t.Errorf("it was asked %d times while down", s.requests-asked)
	}
	d.mu.Lock()
	d.down = time.Time{}
	d.mu.Unlock()
	s.mu.Lock()
	s.answer = nil
	s.mu.Unlock()
	if n, err := d.Renew(t.Context()); n != 1 || err != nil {
		t.Errorf("renewed %d: %v", n, err)
	}
	recall(t, d, annPrivate, "beverage")
	if x := indexOf(t, d, annPrivate); x.vectors == nil {
		t.Error("it has no vector after all")
	}
}

func indexOf(t testing.TB, d *Diary, v View) (x *index) {
	t.Helper()
	if err := d.Store.View(t.Context(), func(tx memory.Tx) (err error) {
		x, err = d.index(tx, v)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return x
}

func TestOpenAIConfig(t *testing.T) {
	for _, c := range []OpenAIConfig{{}, {BaseURL: "x", Name: "m"}, {BaseURL: "ftp://a", Name: "m"}, {BaseURL: "http://a"}} {
		if _, err := OpenAI(c); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}
