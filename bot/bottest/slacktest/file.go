package slacktest

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
)

const filesPath = "/files-pri/"

// Attachment is a file that a person attaches.
type Attachment struct {
	ID      string // a new one if ""
	Name    string
	Type    string // its MIME type
	Content string
	Size    int            // that is announced; 0 for that of the content
	More    map[string]any // further fields of the file object
	// Shy lets messages tell only that files.info tells of the file, as those from other organisations do.
	Shy bool
	// Serve, if set, answers who asks for the bytes. Without it they are given to those who show the bot's token, and a
	// sign-in page with status 200 to all others.
	Serve http.HandlerFunc
}

// Download is somebody's request for the bytes of a file.
type Download struct {
	ID            string
	Authorization string
}

// attached is a file that was attached.
type attached struct {
	Attachment
	deleted bool
}

// AddFile uploads a file for a person, who may attach it to what they say. It returns its id.
func (s *Server) AddFile(a Attachment) (id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.ID == "" {
		a.ID = s.number("F0ANN")
	}
	if a.Size == 0 {
		a.Size = len(a.Content)
	}
	s.attached[a.ID] = &attached{Attachment: a}
	return a.ID
}

// DeleteFile deletes a file that was attached.
func (s *Server) DeleteFile(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attached[id].deleted = true
}

// Downloads are all requests for the bytes of files so far.
func (s *Server) Downloads() []Download {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Download(nil), s.downloads...)
}

// object is a file as Slack tells of it. The caller holds mu.
func (s *Server) object(a *attached) map[string]any {
	url := s.http.URL + filesPath + a.ID
	object := map[string]any{
		"id": a.ID, "name": a.Name, "title": a.Name, "mimetype": a.Type, "size": a.Size, "mode": "hosted", "is_external": false,
		"external_type": "", "file_access": "visible", "url_private": url, "url_private_download": url + "/download",
	}
	maps.Copy(object, a.More)
	return object
}

// shared is a file as a message tells of it. The caller holds mu.
func (s *Server) shared(id string) map[string]any {
	a := s.attached[id]
	if a == nil {
		panic("slacktest: there is no file " + id)
	}
	if a.Shy {
		return map[string]any{"id": id, "mode": "file_access", "file_access": "check_file_info"}
	}
	return s.object(a)
}

func (s *Server) filesInfo(id string) answer {
	a := s.attached[id]
	switch {
	case a == nil:
		return failure("file_not_found")
	case a.deleted:
		return failure("file_deleted")
	}
	return answer{"file": s.object(a), "comments": []any{}, "paging": map[string]any{"count": 1, "total": 0, "page": 1, "pages": 0}}
}

// download gives a file's bytes.
func (s *Server) download(w http.ResponseWriter, r *http.Request, path string) {
	id, _, _ := strings.Cut(path, "/")
	s.mu.Lock()
	a, auth := s.attached[id], r.Header.Get("Authorization")
	s.downloads = append(s.downloads, Download{id, auth})
	s.Happened()
	s.mu.Unlock()
	switch {
	case a == nil || a.deleted:
		http.NotFound(w, r)
	case a.Serve != nil:
		a.Serve(w, r)
	case auth != "Bearer "+BotToken:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<!DOCTYPE html><html><title>Sign in</title></html>")
	default:
		w.Header().Set("Content-Type", a.Type)
		_, _ = io.WriteString(w, a.Content)
	}
}

// uploading is a file that the app uploads.
type uploading struct {
	name    string
	length  int
	content string
	whole   bool
}

// getUploadURL is the first of the three steps in which an app uploads a file.
func (s *Server) getUploadURL(c Call) answer {
	length, err := strconv.Atoi(c.Form.Get("length"))
	if err != nil || length <= 0 || c.Form.Get("filename") == "" {
		return failure("invalid_arguments")
	}
	id := s.number("F")
	s.uploads[id] = &uploading{name: c.Form.Get("filename"), length: length}
	return answer{"upload_url": s.http.URL + "/upload/" + id, "file_id": id}
}

// upload is the second: it takes the bytes, as many as were announced.
func (s *Server) upload(w http.ResponseWriter, r *http.Request, id string) {
	file, _, err := r.FormFile("file")
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	content, _ := io.ReadAll(file)
	s.mu.Lock()
	fault, up := s.Spoil("upload", len(s.calls)), s.uploads[id]
	fits := up != nil && len(content) == up.length
	if fits && (fault == nil || fault.Done) {
		up.content, up.whole = string(content), true
	}
	s.mu.Unlock()
	switch {
	case fault != nil && spoiled(w, r, *fault):
	case !fits:
		w.WriteHeader(http.StatusBadRequest)
	default:
		_, _ = io.WriteString(w, "OK")
	}
}

// completeUpload is the third: it shares the file.
func (s *Server) completeUpload(c Call) answer {
	ch := s.channels[c.Form.Get("channel_id")]
	if ch == nil {
		return failure("channel_not_found")
	}
	if ch.unknownThread(c.Form.Get("thread_ts")) {
		return failure("thread_not_found")
	}
	var files []File
	if json.Unmarshal([]byte(c.Form.Get("files")), &files) != nil || len(files) == 0 {
		return failure("invalid_arguments")
	}
	for i, f := range files {
		up := s.uploads[f.ID]
		if up == nil || !up.whole {
			return failure("file_not_found")
		}
		files[i].Name = up.name
	}
	ch.messages = append(ch.messages, &Message{
		Channel: ch.id, TS: s.nextTS(), Thread: c.Form.Get("thread_ts"), User: BotUser, Text: c.Form.Get("initial_comment"), Files: files,
	})
	return answer{"files": files}
}
