package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// known are the configured secrets of a public bug report, and some with characters that programs escape.
var known = []string{
	"sk-test-AAAABBBBCCCCDDDD0001", "xoxb-test-0001-AAAA", "MTIz.test.AAAA", "sk-test-NEWLINE0002\n", "https://llm.test/v1?key=AIzaTESTKEY0003",
	`p"a\s<s>w&o'rd 1234567`, "postgres://nudge:hunter2-is-not-it@db.test/nudge", "пароль-від-бази", "eightish",
}

// leaks finds what a text gives away of a secret: a piece of 12 bytes, or all of a shorter one, as it is or encoded.
func leaks(text, secret string) string {
	secret = strings.TrimSpace(secret)
	for _, spelling := range []string{secret, url.QueryEscape(secret), base64.StdEncoding.EncodeToString([]byte(secret)), base64.URLEncoding.EncodeToString([]byte(secret))} {
		for i := 0; i+pieceSize <= len(spelling); i++ {
			if piece := spelling[i : i+pieceSize]; strings.Contains(text, piece) {
				return piece
			}
		}
		if len(spelling) < pieceSize && strings.Contains(text, spelling) {
			return spelling
		}
	}
	return ""
}

// carriers write a secret as programs do.
var carriers = map[string]func(string) string{
	"alone":        func(s string) string { return s },
	"a header":     func(s string) string { return "GET / HTTP/1.1\nAuthorization: Bearer " + s + "\nAccept: */*" },
	"a quote":      func(s string) string { return fmt.Sprintf("invalid header value %q for key", s) },
	"in brackets":  func(s string) string { return "{map[Authorization:[Bearer " + s + "]]}" },
	"JSON":         func(s string) string { b, _ := json.Marshal(map[string]string{"key": s}); return string(b) },
	"an address":   func(s string) string { return "https://x.test/?q=" + url.QueryEscape(s) + "&page=2" },
	"base64":       func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64 later": func(s string) string { return base64.StdEncoding.EncodeToString([]byte("user:" + s + ":more")) },
	"base64 urls":  func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte("u:" + s)) },
	"hexadecimal":  func(s string) string { return fmt.Sprintf("%x", s) },
	"twice":        func(s string) string { return s + s },
	"cut":          func(s string) string { return s[:len(s)-1] + "…" },
	"env":          func(s string) string { return "HOME=/root\nNUDGE_KEY=" + s + "\nLANG=C" },
}

func TestKnownSecretsAreFoundHoweverTheyAreWritten(t *testing.T) {
	r := New(known...)
	for _, secret := range known {
		if strings.HasPrefix(secret, "postgres:") || strings.HasPrefix(secret, "https:") {
			secret = secretParts(secret)[0]
		}
		for name, carry := range carriers {
			if len(secret) <= pieceSize && (name == "cut" || strings.HasPrefix(name, "base64 ")) {
				continue // too little of it is there
			}
			carried := carry(strings.TrimSpace(secret))
			text := r.Text("before " + carried + " after")
			if !strings.HasPrefix(text, "before ") || !strings.HasSuffix(text, " after") || leaks(text, secret) != "" || !strings.Contains(text, Mark) {
				t.Errorf("%s: %q is shown as %q, which gives away %q", name, carried, text, leaks(text, secret))
			}
		}
	}
	if text := New("https://hooks.test/services/T000/abcdefghij0123456789").Text("POST /services/T000/abcdefghij0123456789"); text != "POST /services/T000/[secret]" {
		t.Errorf("the path of a hook is shown as %q", text)
	}
	if text := r.Text("GET https://llm.test/v1/chat as nudge at db.test/nudge"); strings.Contains(text, Mark) {
		t.Errorf("the rest of an address is hidden: %q", text)
	}
}

func TestShapesAreFound(t *testing.T) {
	r := New()
	for _, c := range []struct{ text, want string }{
		{"key sk-proj-abcDEF0123456789_-xyz.", "key [secret]."},
		{"xoxb-1234567890-abcdef, xapp-1-A0-123456", "[secret], [secret]"},
		{"ghp_abcdefghijklmnopqrstuvwxyz0123456789 github_pat_11ABCDEFG0abcdefghij_kl", "[secret] [secret]"},
		{"id AKIAIOSFODNN7EXAMPLE end", "id [secret] end"},
		{"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-DEF_123", "[secret]"},
		{"authorization: bearer abc.DEF-123456789", "authorization: bearer [secret]"},
		{`{"Authorization": "Basic dXNlcjpwYXNz"}`, `{"Authorization": "Basic [secret]"}`},
		{"https://x.test/v1?key=AIzaTESTKEY0003&alt=json", "https://x.test/v1?key=[secret]&alt=json"},
		{"https://b.test/o?X-Amz-Signature=0a1b2c3d4e&x=1", "https://b.test/o?X-Amz-Signature=[secret]&x=1"},
		{"dial postgres://nudge:wordpass@db/x failed", "dial postgres://nudge:[secret]@db/x failed"},
		{"PATH=/bin\nAWS_SECRET_ACCESS_KEY=abcdefgh\nHOME=/x", "PATH=/bin\nAWS_SECRET_ACCESS_KEY=[secret]\nHOME=/x"},
		{"a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nb", "a\n[secret]\nb"},
		{"-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl", "[secret]"},
		{"MTIzNDU2Nzg5MDEyMzQ1Njc4.GabcDE.abcdefghijklmnopqrstuvwxyz0123", "[secret]"},
		// What only looks a little like one stays.
		{"sk-learn is short for scikit-learn-contributions", "sk-learn is short for scikit-learn-contributions"},
		{"bearer authentication is used, and a bearer of news", "bearer authentication is used, and a bearer of news"},
		{"https://x.test/?sort_key=created_at&token=short", "https://x.test/?sort_key=created_at&token=short"},
		{"ssh://git@host.test/repo at 12:30@noon", "ssh://git@host.test/repo at 12:30@noon"},
		{"-----BEGIN PUBLIC KEY-----", "-----BEGIN PUBLIC KEY-----"},
		{"İstanbul sk-1234567890abcdefgh", "İstanbul [secret]"},
		{"", ""},
	} {
		if got := r.Text(c.text); got != c.want {
			t.Errorf("%q became %q, want %q", c.text, got, c.want)
		}
	}
}

func TestSecretsThatAreTooShortAreLeft(t *testing.T) {
	r := New("", " ", "demo", "\n1234567\n")
	if got := r.Text("a demo of 1234567"); got != "a demo of 1234567" {
		t.Errorf("got %q", got)
	}
	r.Add("12345678")
	if got := r.Text("a demo of 123456789"); got != "a demo of [secret]9" {
		t.Errorf("got %q", got)
	}
	var none *Redactor
	if none.Text("x") != "x" || string(none.JSON([]byte("x"))) != "x" {
		t.Error("nil changes texts")
	}
}

func TestJSONStaysJSON(t *testing.T) {
	r := New(known...)
	rapid.Check(t, func(t *rapid.T) {
		value := map[string]any{}
		for range rapid.IntRange(0, 5).Draw(t, "fields") {
			text := rapid.String().Draw(t, "text")
			if rapid.Bool().Draw(t, "secret") {
				text += rapid.SampledFrom(known).Draw(t, "which") + rapid.String().Draw(t, "rest")
			}
			value[text] = []any{text, 1.5, nil, map[string]any{"a": text}}
		}
		document, err := json.MarshalIndent(value, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		hidden := r.JSON(document)
		if !json.Valid(hidden) {
			t.Fatalf("%s became %s", document, hidden)
		}
		var back any
		if err := json.Unmarshal(hidden, &back); err != nil {
			t.Fatal(err)
		}
		for _, secret := range known {
			secret = secretParts(strings.TrimSpace(secret))[0]
			if text := fmt.Sprint(back); leaks(text, secret) != "" {
				t.Fatalf("%s gives away %q", text, leaks(text, secret))
			}
		}
	})
	kept := ` { "b":1.50, "a": "\u0041\/", "b":[ ] }`
	if got := string(r.JSON([]byte(kept))); got != kept {
		t.Errorf("what holds no secret became %s", got)
	}
}

func TestLogsHoldNoSecret(t *testing.T) {
	var out bytes.Buffer
	r := New(known...)
	for _, inner := range []slog.Handler{
		slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}), slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}),
	} {
		log := slog.New(r.Handler(inner))
		for _, secret := range known[:4] {
			log.Debug("asked with "+secret, "key", secret, "error", fmt.Errorf("dial: %w", errors.New(secret)), "raw", []byte(secret), "header", map[string][]string{"Authorization": {"Bearer " + secret}})
			log.With("key", secret).WithGroup("g").Info("m", slog.Group("request", "url", "https://x.test/?key="+secret, slog.Any("v", struct{ Key string }{secret})), "lazy", lazy(secret))
		}
	}
	text := out.String()
	for _, secret := range known[:4] {
		if leaks(text, secret) != "" {
			t.Errorf("the log gives away %q", leaks(text, secret))
		}
	}
	if !strings.Contains(text, "asked with [secret]") || !strings.Contains(text, "dial: [secret]") || !strings.Contains(text, "request.url=") {
		t.Errorf("the log says %s", text)
	}
}

type lazy string

func (l lazy) LogValue() slog.Value { return slog.StringValue("is " + string(l)) }

func FuzzText(f *testing.F) {
	for _, secret := range known {
		f.Add(secret, "before", "after")
	}
	f.Fuzz(func(t *testing.T, secret, before, after string) {
		if secret = strings.TrimSpace(secret); len(secret) < pieceSize || !slices.Equal(secretParts(secret), []string{secret}) {
			return
		}
		r := New(secret)
		if text := r.Text(before + secret + after); strings.Contains(text, secret) && !strings.Contains(before+Mark+after, secret) {
			t.Fatalf("%q is in %q", secret, text)
		}
	})
}

func BenchmarkText(b *testing.B) {
	r := New(known...)
	text := strings.Repeat("The harbour opens at six in the morning; see https://x.test/a?b=c for more = all of it.\n", 360)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		r.Text(text)
	}
}
