package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"nudge/agent/model"
)

// Beginning is a conversation as a client last wrote it. The next request is spliced from it: what is still the same is
// taken as it was written, and only what comes after is written. The zero value has nothing, so that all is written.
// It is not for concurrent use.
//
// A request is a JSON object of three parts: the head, made of the system prompt and the tools; the messages; and the
// tail. A client calls [Beginning.Open], [Beginning.Resume], [Beginning.Add] for each message from there on, and
// [Beginning.Close]. If one of them fails, the beginning is good for the next request all the same.
//
// Where an answer begins (see [Speaks]), what stands before it is settled: nothing that follows can change it. So that
// is where a conversation is cut.
type Beginning struct {
	system string // the head is made of it and of the tools
	tools  []model.Tool
	head   []byte // up to where the next message stands

	messages []model.Message // as they were when they were last written
	answers  []answer        // ascending
	asks     bool            // an answer that comes next finds all settled

	// What is settled may be part of requests that are still under way, so that it is added to but never written over.
	// What is loose, the messages since the last answer began, is each request's own.
	settled Pieces
	loose   bytes.Buffer
}

// answer is where an answer begins.
type answer struct {
	message int
	settled int // the bytes before it
}

// Open writes the head, unless it is there already for the same system prompt and tools. What write returns is written
// as an object whose last field is the list that the messages are added to.
func (b *Beginning) Open(system string, tools []model.Tool, write func() (any, error)) error {
	if b.head != nil && b.system == system && slices.EqualFunc(b.tools, tools, sameTool) {
		return nil
	}
	fields, err := write()
	if err != nil {
		return err
	}
	var head bytes.Buffer
	if err := encode(&head, fields); err != nil {
		return err
	}
	b.system, b.tools, b.head = system, slices.Clone(tools), bytes.TrimSuffix(head.Bytes(), []byte("]}"))
	return nil
}

// Resume compares a conversation with the one that was written, forgets what differs, and returns the index of the
// first message that has to be written: 0, or that of an answer before which something was sent.
func (b *Beginning) Resume(messages []model.Message) int {
	same := 0
	for same < min(len(messages), len(b.messages)) && sameMessage(&messages[same], &b.messages[same]) {
		same++
	}
	isAnswer := func(at int) bool { return at < same || at == same && at < len(messages) && Speaks(&messages[at]) }
	if end := len(b.messages); b.asks && isAnswer(end) {
		b.settle(end)
	}
	b.loose, b.asks = bytes.Buffer{}, false

	n := len(b.answers)
	for n > 0 && !isAnswer(b.answers[n-1].message) {
		n--
	}
	if n == 0 {
		b.messages, b.answers, b.settled = nil, nil, Pieces{make([]byte, 0, roomFor(messages))} // a shorter one gives memory back
		b.remember(messages, 0)
		return 0
	}
	from := b.answers[n-1]
	b.answers = b.answers[:n-1]
	b.settled = b.settled.upTo(from.settled)
	b.loose.Grow(roomFor(messages[from.message:]))
	b.remember(messages, same)
	return from.message
}

// settle makes settled what is loose, since an answer begins.
func (b *Beginning) settle(message int) {
	n := len(b.settled) - 1
	if n < 0 || cap(b.settled[n])-len(b.settled[n]) < b.loose.Len() {
		b.settled = append(b.settled, make([]byte, 0, max(b.loose.Len(), b.settled.Size()/8)))
		n++
	}
	b.settled[n] = append(b.settled[n], b.loose.Bytes()...)
	b.loose.Reset()
	b.answers = append(b.answers, answer{message: message, settled: b.settled.Size()})
}

// roomFor returns about how many bytes messages are written in.
func roomFor(messages []model.Message) int {
	n := 0
	for i := range messages {
		n += len(messages[i].Text) + 64
		for _, c := range messages[i].Calls {
			n += len(c.Arguments) + 128
		}
	}
	return n + n/8
}

// remember takes in the messages from an index on, so that their owner may change them.
func (b *Beginning) remember(messages []model.Message, from int) {
	clear(b.messages[from:])
	b.messages = append(b.messages[:from], messages[from:]...)
	for i := from; i < len(b.messages); i++ {
		b.messages[i].Calls = slices.Clone(b.messages[i].Calls)
	}
}

// Add writes what is sent next. If that begins with an answer and something was added before, begins is the answer's
// index; else it is 0.
func (b *Beginning) Add(sent any, begins int) error {
	if begins > 0 {
		b.settle(begins)
	}
	if b.settled.Size()+b.loose.Len() > 0 {
		b.loose.WriteByte(',')
	}
	return encode(&b.loose, sent)
}

// End is how a request ends.
type End struct {
	Tail any    // an object, whose fields come last
	Mark string // goes into the last message of this request only, at the end of its innermost last object; begins with a comma
	Asks bool   // an answer is awaited, which, if it comes next, leaves what was added as it is
}

// Close returns the whole request.
func (b *Beginning) Close(end End) (Pieces, error) {
	var tail bytes.Buffer
	if err := encode(&tail, end.Tail); err != nil {
		return nil, err
	}
	var between []byte
	if b.settled.Size()+b.loose.Len() > 0 && !bytes.HasSuffix(b.head, []byte("[")) {
		between = []byte(",")
	}
	loose := bytes.TrimRight(b.loose.Bytes(), "]}")
	var last bytes.Buffer
	last.WriteString(end.Mark)
	last.Write(b.loose.Bytes()[len(loose):])
	last.WriteByte(']')
	if tail.Len() > len("{}") {
		last.WriteByte(',')
	}
	last.Write(tail.Bytes()[len("{"):])
	b.asks = end.Asks
	return slices.Concat(Pieces{b.head, between}, b.settled, Pieces{loose, last.Bytes()}), nil
}

// Size is of [model.Kept].
func (b *Beginning) Size() int {
	n := cap(b.head) + b.loose.Cap()
	for _, piece := range b.settled {
		n += cap(piece)
	}
	n += cap(b.answers)*sizeOf[answer]() + cap(b.messages)*sizeOf[model.Message]() + cap(b.tools)*sizeOf[model.Tool]()
	for i := range b.messages {
		n += cap(b.messages[i].Calls) * sizeOf[model.Call]()
	}
	return n
}

func sizeOf[T any]() int { return int(reflect.TypeFor[T]().Size()) }

// Speaks says whether a message is an assistant's that says or calls something. One that does not is not sent.
func Speaks(m *model.Message) bool {
	return m.Role == model.Assistant && (len(m.Calls) > 0 || strings.TrimSpace(m.Text) != "")
}

// sameMessage compares what is of the same memory without reading it, as Go does with strings.
func sameMessage(a, b *model.Message) bool {
	return a.Role == b.Role && a.Text == b.Text && a.CallID == b.CallID && a.Reasoning == b.Reasoning && slices.Equal(a.Calls, b.Calls)
}

func sameTool(a, b model.Tool) bool {
	return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Schema, b.Schema)
}

// encode adds a part of a request, with < and > as they are.
func encode(to *bytes.Buffer, part any) error {
	enc := json.NewEncoder(to)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(part); err != nil {
		return fmt.Errorf("encode the request: %w", err)
	}
	to.Truncate(to.Len() - len("\n"))
	return nil
}
