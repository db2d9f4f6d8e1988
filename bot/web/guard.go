package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// policy is what the page may load: its own files, and nothing that was written into it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// headers puts on every answer what keeps a browser from doing more with it than it should.
func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// refuse answers with an error as one line of JSON.
func refuse(w http.ResponseWriter, status int, format string, details ...any) {
	answer(w, status, map[string]string{"error": fmt.Sprintf(format, details...)})
}

// answer answers with one line of JSON.
func answer(w http.ResponseWriter, status int, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"error":"the answer could not be written"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n')) // who is gone gets no answer
}

// knownHost lets through only requests that name this server rightly. A page of a stranger whose name was made to
// point here names the stranger.
func (s *Server) knownHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.hostAllowed(r) {
			refuse(w, http.StatusForbidden, "this server does not answer to that host name; open it by the address that it printed")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hostAllowed reports whether the Host header is localhost, a loopback address, the host of the config, or, where
// that means every address of the machine, the one that the connection came to.
func (s *Server) hostAllowed(r *http.Request) bool {
	name := r.Host
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	switch name {
	case "":
		return false
	case "localhost", "127.0.0.1", "::1", strings.ToLower(s.host):
		return true
	}
	asked := net.ParseIP(name)
	if listen := net.ParseIP(s.host); asked == nil || s.host != "" && (listen == nil || !listen.IsUnspecified()) {
		return false
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && local.IP.Equal(asked)
}

// only answers one method.
func (s *Server) only(method string, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != method && !(method == http.MethodGet && r.Method == http.MethodHead) {
			w.Header().Set("Allow", method)
			refuse(w, http.StatusMethodNotAllowed, "this address takes %s", method)
			return
		}
		next(w, r)
	}
}

// own lets through what the page itself asks, with its cookie.
func (s *Server) own(next http.HandlerFunc) http.HandlerFunc {
	return s.signedIn(func(w http.ResponseWriter, r *http.Request) {
		if !sameOrigin(r) {
			refuse(w, http.StatusForbidden, "this request does not come from the page of this server")
			return
		}
		next(w, r)
	})
}

// signedIn lets through who has the cookie.
func (s *Server) signedIn(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.hasCookie(r) {
			refuse(w, http.StatusUnauthorized, "this browser is not signed in; open the address that nudge printed when it started")
			return
		}
		next(w, r)
	}
}

// sameOrigin reports whether a request comes from a page of this server. Browsers send Origin with every POST, and
// with a GET that crosses origins; others of theirs are known by Sec-Fetch-Site, which is not sent over plain HTTP
// from another machine. There a stream without both is let through: a page of a stranger cannot ask for one without
// an Origin, and could read nothing of what it got otherwise.
func sameOrigin(r *http.Request) bool {
	if origins := r.Header.Values("Origin"); len(origins) > 0 {
		return len(origins) == 1 && isOrigin(origins[0], r.Host)
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin":
		return true
	case "":
		return r.Method == http.MethodGet && r.Header.Get("Accept") == "text/event-stream"
	}
	return false
}

func isOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && strings.EqualFold(u.Host, host)
}

// cookieName has the port in it, because browsers give a cookie to every port of a host.
func (s *Server) cookieName() string { return "nudge_" + s.port }

// cookieValue stands for the token, so that whoever reads the cookie does not have the token.
func (s *Server) cookieValue() string {
	sum := hmac.New(sha256.New, []byte(s.Token))
	sum.Write([]byte("nudge cookie"))
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil))
}

func (s *Server) hasCookie(r *http.Request) bool {
	cookie, err := r.Cookie(s.cookieName())
	return err == nil && same(cookie.Value, s.cookieValue())
}

// same compares secrets in a time that tells nothing of them.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// bearer lets through programs that have the API's token.
func (s *Server) bearer(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.APIToken == "" {
			refuse(w, http.StatusNotFound, "the API is off; set web.api_token_env to turn it on")
			return
		}
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") || !same(strings.TrimSpace(token), s.APIToken) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(w, http.StatusUnauthorized, "send the API's token as: Authorization: Bearer TOKEN")
			return
		}
		if (r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "") && !sameOrigin(r) {
			refuse(w, http.StatusForbidden, "the API does not answer pages of others")
			return
		}
		s.only(http.MethodPost, next)(w, r)
	}
}

// readBody reads a request's JSON into value, and answers itself when it cannot.
func readBody(w http.ResponseWriter, r *http.Request, value any) bool {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, "send JSON, with Content-Type: application/json")
		return false
	}
	conn := http.NewResponseController(w)
	_ = conn.SetReadDeadline(time.Now().Add(headerTime)) // where that cannot be set, a body in hand needs none
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(value)
	if err == nil {
		if _, err = decoder.Token(); errors.Is(err, io.EOF) {
			_ = conn.SetReadDeadline(time.Time{})
			return true
		}
		err = errors.New("there is more than one value")
	}
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		refuse(w, http.StatusRequestEntityTooLarge, "the request is longer than %d bytes", int64(maxBody))
	} else {
		refuse(w, http.StatusBadRequest, "the request cannot be read: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return false
}
