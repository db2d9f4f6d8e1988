package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"nudge/agent"
	"nudge/agent/model"
	"nudge/agent/model/modeltest"
)

// soakMark is what tells one message of a person's from all others.
var soakMark = regexp.MustCompile(`\b(?:ann|bob|carl|dora|emil)-[0-9]+\b`)

// soakProvider is a provider that answers at random, and charges for it.
type soakProvider struct {
	soak    *soak
	calm    atomic.Bool  // it answers with words only
	effects atomic.Int64 // ids of effects given out

	mu      sync.Mutex
	tries   map[string]int // how often the same was asked
	charged agent.Money
	counts  map[string]int
}

func newSoakProvider(s *soak) *soakProvider {
	return &soakProvider{soak: s, tries: map[string]int{}, counts: map[string]int{}}
}

// effect is the id of an effect that is asked for nowhere else.
func (m *soakProvider) effect() string { return fmt.Sprint("fx", m.effects.Add(1)) }

func (m *soakProvider) count(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts["model: "+what]++
}

func (m *soakProvider) counted() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counts
}

// choices are those for a request. The same conversation gets the same ones, but for each try others.
func (m *soakProvider) choices(req modeltest.ChatRequest) *rand.Rand {
	marks := soakMark.FindAllString(string(req.Body), -1)
	key := fmt.Sprint("request ", len(req.Messages))
	if len(marks) > 0 {
		key += " " + marks[len(marks)-1]
	}
	m.mu.Lock()
	m.tries[key]++
	try := m.tries[key]
	m.mu.Unlock()
	return m.soak.diceOf(fmt.Sprint(key, " ", try))
}

// answer answers a request; it is for [modeltest.NewServer].
func (m *soakProvider) answer(_ int, req modeltest.ChatRequest) modeltest.Reply {
	m.count("requests")
	if fault := soakFault(req); fault != "" {
		m.soak.root.Errorf("a request that no provider would take: %s\n%s", fault, req.Body)
	}
	dice := m.choices(req)
	reply := m.reply(req, dice)
	if !m.calm.Load() {
		m.spoil(&reply, dice)
	}
	if reply.Status == 0 && reply.Body == "" {
		m.charge(req, &reply)
	}
	return reply
}

// spoil makes what a provider in trouble would make of an answer.
func (m *soakProvider) spoil(reply *modeltest.Reply, dice *rand.Rand) {
	switch roll := dice.IntN(1000); {
	case roll < 15:
		m.count("429")
		*reply = modeltest.Reply{Status: http.StatusTooManyRequests, Body: `{"error":{"message":"slow down"}}`, Header: http.Header{"Retry-After": {"1"}}}
	case roll < 40:
		m.count("500")
		*reply = modeltest.Reply{Status: http.StatusInternalServerError, Body: `{"error":{"message":"oh"}}`}
	case roll < 45:
		m.count("400")
		*reply = modeltest.Reply{Status: http.StatusBadRequest, Body: `{"error":{"message":"no"}}`}
	case roll < 65:
		m.count("streams broken off")
		reply.BreakOff = true
	case roll < 80:
		m.count("streams that hang")
		reply.Hang = true
	case roll < 90:
		m.count("garbage")
		*reply = modeltest.Reply{Body: "<html>hello</html>", Header: http.Header{"Content-Type": {"text/html"}}}
	case roll < 100:
		m.count("empty answers")
		reply.Text, reply.Calls = "", nil
	case roll < 120:
		m.count("answers cut at their limit")
		reply.Finish = "length"
	case roll < 350:
		m.count("slow answers")
		time.Sleep(time.Duration(dice.IntN(2000)) * time.Millisecond)
	}
}

// charge adds what an answer costs, and reports it for most of them. The limit that was sent is honoured.
func (m *soakProvider) charge(req modeltest.ChatRequest, reply *modeltest.Reply) {
	out := len(reply.Text) / 4
	for _, c := range reply.Calls {
		out += (len(c.Name) + len(c.Arguments)) / 4
	}
	u := model.Usage{In: len(req.Body) / 4, Out: min(out+1, max(req.MaxTokens, req.MaxCompletionTokens)), Known: true}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.charged += agent.Money(u.In)*agent.PerMillion(2) + agent.Money(u.Out)*agent.PerMillion(12)
	u.Known = m.counts["model: requests"]%50 != 0
	reply.Usage = u
}

// reply is an answer in good order.
func (m *soakProvider) reply(req modeltest.ChatRequest, dice *rand.Rand) modeltest.Reply {
	switch {
	case len(req.Tools) == 0:
		m.count("summaries")
		return modeltest.Reply{Text: summaryOf(req, dice)}
	case m.calm.Load():
		return modeltest.Reply{Text: "All is done."}
	case req.Offers("notify"):
		return m.woken(req, dice)
	}
	asked := len(results(req))
	if dice.IntN(10) < 2+2*asked {
		m.count("words")
		return modeltest.Reply{Text: "This is what came of it." + strings.Repeat(" It went well.", dice.IntN(40))}
	}
	m.count("batches")
	reply := modeltest.Reply{}
	if dice.IntN(3) == 0 {
		reply.Text = "Let me see."
	}
	for range 1 + dice.IntN(4) {
		name, arguments := m.call(dice)
		reply.Calls = append(reply.Calls, call(m.callID(), name, arguments))
	}
	return reply
}

// callID is the id of a call, which no other has.
func (m *soakProvider) callID() string { return fmt.Sprint("call_", m.effects.Add(1)) }

// summaryOf is a summary that mostly has what it must.
func summaryOf(req modeltest.ChatRequest, dice *rand.Rand) string {
	_, keep, _ := strings.Cut(req.Last().Content, "Keep word for word:\n")
	if dice.IntN(4) == 0 {
		keep = ""
	}
	return "They asked for this and that, and it was done.\n" + keep
}

// woken is an answer to a wake.
func (m *soakProvider) woken(req modeltest.ChatRequest, dice *rand.Rand) modeltest.Reply {
	m.count("wakes")
	if len(results(req)) > 0 {
		return modeltest.Reply{Text: "Nobody reads this."}
	}
	var calls []model.Call
	if dice.IntN(3) > 0 {
		calls = append(calls, call(m.callID(), "notify", `{"text":"the flag is up"}`))
	}
	if dice.IntN(4) == 0 {
		calls = append(calls, call(m.callID(), "run_command", fmt.Sprintf(`{"name":"ask-note","id":"%s"}`, m.effect())))
	}
	if dice.IntN(4) == 0 {
		calls = append(calls, call(m.callID(), "run_command", fmt.Sprintf(`{"name":"note","id":"%s"}`, m.effect())))
	}
	return modeltest.Reply{Text: "Nobody reads this.", Calls: calls}
}

// call is a call at random.
func (m *soakProvider) call(dice *rand.Rand) (name, arguments string) {
	path := fmt.Sprintf("f%d.txt", dice.IntN(12))
	preset := func(name string) (string, string) {
		return "run_command", fmt.Sprintf(`{"name":"%s","id":"%s"}`, name, m.effect())
	}
	switch dice.IntN(20) {
	case 0:
		return "list_files", `{}`
	case 1, 2:
		return "read_file", fmt.Sprintf(`{"path":"%s"}`, path)
	case 3, 4:
		return "write_file", fmt.Sprintf(`{"path":"%s","content":"%s"}`, path, strings.Repeat("words ", dice.IntN(200)))
	case 5:
		return "delete_file", fmt.Sprintf(`{"path":"%s"}`, path)
	case 6, 7:
		return preset("note")
	case 8, 9, 10:
		return preset("slow-note")
	case 11, 12:
		return preset("ask-note")
	case 13:
		return preset("same-note")
	case 14:
		return "run_command", `{"name":"look"}`
	case 15:
		return "run_command", fmt.Sprintf(`{"name":"%s"}`, []string{"long", "long", "hang"}[dice.IntN(3)])
	case 16:
		return "ask_person", `{"question":"Which colour?","choices":["red","blue"]}`
	case 17:
		return "plan", `{"items":[{"text":"look","done":true},{"text":"act","done":false}]}`
	case 18:
		return "no_such_tool", `{"x":1}`
	}
	return "write_file", `{"path":"a.txt","content":` // the arguments were cut
}

// soakFault says what is wrong with a request: every call has one result, right after it and in order, and no call
// stands there twice.
func soakFault(req modeltest.ChatRequest) string {
	var due []string
	seen := map[string]bool{}
	for i, m := range req.Messages {
		switch {
		case m.Role == "tool" && (len(due) == 0 || due[0] != m.ToolCallID):
			return fmt.Sprintf("message %d is a result of %s, where %q is due", i, m.ToolCallID, due)
		case m.Role == "tool":
			due = due[1:]
			continue
		case len(due) > 0:
			return fmt.Sprintf("message %d stands where results of %q are due", i, due)
		case m.Role == "system" && i > 0:
			return fmt.Sprintf("message %d is the system's", i)
		case m.Role == "user" && strings.TrimSpace(m.Content) == "":
			return fmt.Sprintf("message %d says nothing", i)
		}
		for _, c := range m.ToolCalls {
			if c.ID == "" || seen[c.ID] {
				return fmt.Sprintf("message %d has the call %q a second time", i, c.ID)
			}
			if !json.Valid([]byte(c.Function.Arguments)) {
				return fmt.Sprintf("message %d has a call with the arguments %q", i, c.Function.Arguments)
			}
			seen[c.ID] = true
			due = append(due, c.ID)
		}
	}
	switch {
	case len(due) > 0:
		return fmt.Sprintf("there are no results of %q", due)
	case req.Last().Role == "assistant" || len(req.Messages) == 0:
		return "the last word is the model's"
	case bytes.Count(req.Body, []byte(soakToken)) > 0:
		return "a secret is in it"
	}
	return ""
}
