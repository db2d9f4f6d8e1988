package slack

import (
	"context"
	"fmt"
	"strconv"

	"github.com/slack-go/slack"
)

// mostTasks is how many lines a streamed list of what is being done has. The last one is rewritten by what comes after.
const mostTasks = 30

// stream is a message that grows by a line for each thing that is done, each with a sign for whether it still is. Titles of
// tasks are plain text, in which nothing is markup (docs.slack.dev/reference/block-kit/blocks/task-card-block).
type stream struct {
	s       *Slack
	channel string
	thread  string
	to      asker // for whom; Slack wants to know it in channels

	ts    string // "" before it is begun
	tasks int
	last  string
	over  bool // Slack has ended it
}

// show adds lines, at most as many as a list has.
func (m *stream) show(ctx context.Context, lines []string) (err error) {
	tasks, last := m.tasks, m.last
	defer func() {
		if err != nil {
			m.tasks, m.last = tasks, last // the same lines may be shown again
		}
	}()
	chunks := m.chunks(lines)
	if len(chunks) == 0 {
		return nil
	}
	if m.ts != "" {
		_, _, err := m.s.api.AppendStreamContext(ctx, m.channel, m.ts, slack.MsgOptionChunks(chunks...))
		if err != nil {
			return fmt.Errorf("add to the progress in %s: %w", m.channel, err)
		}
		return nil
	}
	options := []slack.MsgOption{slack.MsgOptionTS(m.thread), slack.MsgOptionTaskDisplayMode(slack.TaskDisplayModeTimeline), slack.MsgOptionChunks(chunks...)}
	if !direct(m.channel) {
		options = append(options, slack.MsgOptionRecipientUserID(m.to.user), slack.MsgOptionRecipientTeamID(m.to.team))
	}
	_, ts, err := m.s.api.StartStreamContext(ctx, m.channel, options...)
	if err != nil {
		return fmt.Errorf("begin to stream the progress in %s: %w", m.channel, err)
	}
	m.ts = ts
	return nil
}

// chunks are what Slack is sent for lines: the one before is done, the new ones follow, and the last is being done.
func (m *stream) chunks(lines []string) []slack.StreamChunk {
	var chunks []slack.StreamChunk
	for _, line := range lines {
		if line == m.last {
			continue
		}
		if m.tasks > 0 && m.tasks < mostTasks {
			chunks = append(chunks, m.task(slack.TaskCardStatusComplete))
		}
		m.tasks, m.last = min(m.tasks+1, mostTasks), line
		chunks = append(chunks, m.task(slack.TaskCardStatusInProgress))
	}
	return chunks
}

// task is the last line.
func (m *stream) task(status slack.TaskCardStatus) slack.StreamChunk {
	chunk := slack.NewTaskUpdateChunk(strconv.Itoa(m.tasks), m.last)
	chunk.Status = status
	return chunk
}

// stop ends the stream, so that its message can be changed and deleted like any other.
func (m *stream) stop(ctx context.Context) error {
	if m.ts == "" || m.over {
		return nil
	}
	if err := stopStream(ctx, m.s, message{m.channel, m.ts}); err != nil {
		return err
	}
	m.over = true
	return nil
}

func stopStream(ctx context.Context, s *Slack, at message) error {
	_, _, err := s.api.StopStreamContext(ctx, at.channel, at.ts)
	if !done(err, "message_not_in_streaming_state", "message_not_found", "channel_not_found", "is_archived") {
		return fmt.Errorf("end the stream at %s: %w", at, err)
	}
	return nil
}
