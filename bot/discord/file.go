package discord

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"nudge/agent"
	"nudge/bot"
)

// attached is a file of a message (docs.discord.com/developers/resources/message#attachment-object).
type attached struct {
	ID      string `json:"id"`
	Name    string `json:"filename"`
	Type    string `json:"content_type"`
	Size    int64  `json:"size"`
	Address string `json:"url"`
}

// files are those that came with a message. Their addresses are good for a day only, so that a file is known by where it stands.
func (m said) files() (files []agent.File) {
	for _, file := range m.Files {
		if isID(file.ID) {
			files = append(files, agent.File{ID: m.Channel + "-" + m.ID + "-" + file.ID, Name: file.Name, Type: file.Type, Size: file.Size})
		}
	}
	return files
}

// fetchFor is how long getting one file may take.
const fetchFor = 50 * time.Second

// hosts are where Discord keeps what is attached.
var hosts = []string{"cdn.discordapp.com", "media.discordapp.net"}

var _ bot.Filer = (*Discord)(nil)

// Fetch gets a file that somebody attached. Where it lies is asked anew each time, which also tells of what was deleted. The
// token is not sent there, and no redirect is followed.
func (d *Discord) Fetch(ctx context.Context, file agent.File, limit int64) (io.ReadCloser, error) {
	ctx, stop := context.WithTimeoutCause(ctx, fetchFor, fmt.Errorf("discord did not give it within %s; try again later", fetchFor))
	body, err := d.fetch(ctx, file.ID, limit)
	if err != nil {
		defer stop()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	return &download{ctx: ctx, stop: stop, body: body, limit: limit}, nil
}

func (d *Discord) fetch(ctx context.Context, id string, limit int64) (io.ReadCloser, error) {
	parts := strings.Split(id, "-")
	if len(parts) != 3 || !isID(parts[0]) || !isID(parts[1]) {
		return nil, errors.New("it is no file of discord's")
	}
	var m said
	err := d.api.call(ctx, http.MethodGet, discordgo.EndpointChannelMessage(parts[0], parts[1]), nil, &m)
	switch {
	case done(err, codeUnknownMessage, codeUnknownChannel) && err != nil:
		return nil, errors.New("the message with it was deleted in Discord")
	case done(err, codeNoAccess, codeMissing) && err != nil:
		return nil, errors.New("the bot may not read the message with it; it needs Read Message History there")
	case err != nil:
		d.log.Warn("cannot ask discord for a file", "error", err)
		return nil, errors.New("discord does not tell where it is; try again later")
	}
	at := slices.IndexFunc(m.Files, func(f attached) bool { return f.ID == parts[2] })
	if at < 0 {
		return nil, errors.New("it was deleted in Discord")
	}
	if m.Files[at].Size > limit {
		return nil, bot.TooLarge(m.Files[at].Size, limit)
	}
	return d.get(ctx, m.Files[at].Address, limit)
}

// get asks for a file's bytes, from where Discord keeps them.
func (d *Discord) get(ctx context.Context, address string, limit int64) (io.ReadCloser, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host != d.host && (u.Scheme != "https" || !slices.Contains(hosts, u.Host)) {
		return nil, errors.New("discord keeps it in an unknown place; its content can be pasted")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, errors.New("discord gives no address for it; its content can be pasted")
	}
	answer, err := d.downloads.Do(r)
	if err != nil {
		return nil, errors.New("discord could not be reached for it; try again later")
	}
	switch {
	case answer.StatusCode == http.StatusNotFound, answer.StatusCode == http.StatusGone:
		err = errors.New("it was deleted in Discord")
	case answer.StatusCode != http.StatusOK:
		err = fmt.Errorf("discord answered with status %d; try again later", answer.StatusCode)
	case answer.ContentLength > limit:
		err = bot.TooLarge(answer.ContentLength, limit)
	}
	if err != nil {
		_ = answer.Body.Close()
		return nil, err
	}
	return answer.Body, nil
}

// download is a file that comes.
type download struct {
	ctx   context.Context
	stop  func()
	body  io.ReadCloser
	limit int64
	read  int64
}

// Read gives the file's bytes.
func (f *download) Read(into []byte) (int, error) {
	n, err := f.body.Read(into)
	f.read += int64(n)
	switch {
	case f.read > f.limit:
		return 0, bot.TooLarge(f.read, f.limit)
	case err == nil, errors.Is(err, io.EOF):
		return n, err
	case f.ctx.Err() != nil:
		return n, context.Cause(f.ctx)
	}
	return n, errors.New("it came only in part; try again")
}

// Close ends the download.
func (f *download) Close() error {
	defer f.stop()
	return f.body.Close()
}
