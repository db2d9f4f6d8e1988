package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
)

//go:embed assets
var assets embed.FS

// pages are the files of the page, by name.
type pages map[string]file

type file struct {
	data []byte
	kind string
	tag  string
}

// kinds are the content types of the files there are; sniffing is off.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

func readPages() pages {
	all := pages{}
	entries, _ := assets.ReadDir("assets") // it is built in, so it is there
	for _, entry := range entries {
		data, _ := assets.ReadFile("assets/" + entry.Name())
		sum := sha256.Sum256(data)
		all[entry.Name()] = file{data, kinds[path.Ext(entry.Name())], `"` + hex.EncodeToString(sum[:12]) + `"`}
	}
	return all
}

// openPage answers /. A right token in the address becomes a cookie and leaves the address.
func (s *Server) openPage(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if token := query.Get("token"); token != "" && same(token, s.Token) {
		http.SetCookie(w, &http.Cookie{
			Name: s.cookieName(), Value: s.cookieValue(), Path: "/", MaxAge: 365 * 24 * 3600, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		})
		query.Del("token")
		target := "/"
		if len(query) > 0 {
			target += "?" + query.Encode()
		}
		http.Redirect(w, r, target, http.StatusSeeOther)
		return
	}
	if query.Has("token") || !s.hasCookie(r) {
		s.askToSignIn(w, r)
		return
	}
	s.write(w, http.StatusOK, s.page["index.html"])
}

// askToSignIn says which address to open. A browser that followed a link of another site has kept its cookie back,
// and sends it with the next request, which the page makes at once.
func (s *Server) askToSignIn(w http.ResponseWriter, r *http.Request) {
	name := "signin.html"
	if r.Header.Get("Sec-Fetch-Site") == "cross-site" && !r.URL.Query().Has("token") {
		name = "again.html"
	}
	s.write(w, http.StatusUnauthorized, s.page[name])
}

// asset answers the files that a page needs. They hold no secrets, so the sign-in page may have them too.
func (s *Server) asset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	f, found := s.page[name]
	if !found || path.Ext(name) == ".html" {
		refuse(w, http.StatusNotFound, "there is no such file")
		return
	}
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", f.tag)
	if r.Header.Get("If-None-Match") == f.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	s.write(w, http.StatusOK, f)
}

func (s *Server) write(w http.ResponseWriter, status int, f file) {
	w.Header().Set("Content-Type", f.kind)
	w.WriteHeader(status)
	_, _ = w.Write(f.data) // who is gone gets no answer
}
