package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model"
	"nudge/agent/tool/notify"
	"nudge/agent/tool/workspace"
	"nudge/memory"
)

// The conversation of the sweep. It is made of acts, each with a number of its own; the script finds both in what was
// said last, so that it answers the same after any restart.

// act is a part of the conversation.
type act struct {
	cues func(n int) []cue
	plays
	says []string // what a person reads of it when nothing is disturbed: answers and lines in their place; N is its number
	asks int      // calls of the model that it takes then, without summaries
}

// plays answers a request of an act, of which results are known by call. words are what was said since it began.
type plays func(n int, results map[string]string, words []string, req model.Request) model.Answer

// cue is something that is done from outside: words, a decision, a Stop, a heartbeat's waking.
type cue struct {
	key     string
	during  string // the run of a tool in which it is done, as "tool x"; "" means when all is at rest
	decides string // the call whose card is decided, as "tool x"
	message agent.Message
	wake    *agent.Wake
}

// program is what is played: the acts in their order, and what the agent is made of besides.
type program struct {
	acts    []string
	priced  bool
	window  int           // of the model, in tokens
	latency time.Duration // of the model
	hooked  bool
	again   bool // calls whose outcome is unknown are run again; otherwise they are left
}

// everything is the conversation that is swept.
func everything(priced bool, latency time.Duration) program {
	return program{priced: priced, window: 14_000, latency: latency, acts: []string{
		"gather", "four", "words", "words", "ask", "steer", "stop", "words", "wake", "deploy", "limit", "page", "recall",
	}}
}

// checked is a shorter one with hooks at each point of a step.
func checked() program {
	return program{priced: true, window: 1 << 20, hooked: true, acts: []string{"guarded", "four"}}
}

func said(n int, key, text string) cue {
	key = fmt.Sprintf("%s-%d", key, n)
	return cue{key: key, message: agent.Message{ID: key, Provenance: agent.Human, From: agenttest.Ann, Text: text}}
}

func opened(n int, name string) cue { return said(n, name, fmt.Sprintf("act %s #%d", name, n)) }

func (c cue) in(run string) cue {
	c.during = run
	return c
}

// approved is a person's yes to a call.
func approved(call string, by agent.Person, address string) cue {
	return cue{
		key: "approve " + call, decides: call,
		message: agent.Message{Provenance: agent.Decided, From: by, Address: address, Decision: &agent.Decision{Verdict: agent.Approve}},
	}
}

func calling(n, i int, tool string) model.Call {
	return agenttest.Call(i, tool, fmt.Sprintf(`{"x":"%d-%d"}`, n, i))
}

// longWords are what fills the window. The number in them must outlive every compaction.
var longWords = "The order number is ORD-99812 and it goes to dock/7b. " + strings.Repeat("word ", 2500)

// acts are all that can be played.
var acts = map[string]act{
	// reads side by side, then an idempotent call and one with an effect
	"gather": {
		cues: func(n int) []cue { return []cue{opened(n, "gather")} },
		plays: inSteps("gather", func(n int) [][]model.Call {
			return [][]model.Call{{calling(n, 1, "read"), calling(n, 2, "read")}, {calling(n, 3, "upsert"), calling(n, 4, "write")}}
		}),
		says: []string{"gather #N: read done N-1; read done N-2; upsert done N-3; write done N-4"},
		asks: 3,
	},
	// one approval among four calls
	"four": {
		cues: func(n int) []cue {
			return []cue{opened(n, "four"), approved(fmt.Sprintf("delete %d-2", n), agenttest.Ann, agenttest.Home)}
		},
		plays: inSteps("four", func(n int) [][]model.Call {
			return [][]model.Call{{calling(n, 1, "read"), calling(n, 2, "delete"), calling(n, 3, "write"), calling(n, 4, "write")}}
		}),
		says: []string{"four #N: read done N-1; delete done N-2; write done N-3; write done N-4"},
		asks: 2,
	},
	// a question that is answered in plain words
	"ask": {
		cues: func(n int) []cue {
			return []cue{opened(n, "ask"), said(n, "answer", fmt.Sprintf("the blue one, %d", n))}
		},
		plays: func(n int, results map[string]string, _ []string, _ model.Request) model.Answer {
			if answer := results["ask_person-1"]; answer != "" {
				return agenttest.Say(fmt.Sprintf("ask #%d: %s", n, answer))
			}
			return agenttest.Do(agenttest.Call(1, "ask_person", `{"question":"which one?"}`))
		},
		says: []string{"ask #N: ann answered: the blue one, N"},
		asks: 2,
	},
	// words in the middle of a run
	"steer": {
		cues: func(n int) []cue {
			return []cue{opened(n, "steer"), said(n, "steered", fmt.Sprintf("the green one instead, %d", n)).in(fmt.Sprintf("look %d-1", n))}
		},
		plays: func(n int, results map[string]string, words []string, _ model.Request) model.Answer {
			if len(words) > 0 {
				return agenttest.Say(fmt.Sprintf("steer #%d: %s; %s", n, brief(results, "look-1"), brief(results, "write-2")))
			}
			return agenttest.Do(calling(n, 1, "look"), calling(n, 2, "write"))
		},
		says: []string{"steer #N: look done N-1; not run"},
		asks: 2,
	},
	"stop": {
		cues: func(n int) []cue {
			stop := said(n, "stopped", "").in(fmt.Sprintf("slow %d-1", n))
			stop.message.Stop = true
			return []cue{opened(n, "stop"), stop}
		},
		plays: inSteps("stop", func(n int) [][]model.Call { return [][]model.Call{{calling(n, 1, "slow")}} }),
		says:  []string{"Stopped."},
		asks:  1,
	},
	// a heartbeat that tells something
	"wake": {
		cues: func(n int) []cue {
			return []cue{{key: fmt.Sprintf("wake-%d", n), wake: &agent.Wake{
				Heartbeat: "disk", Episode: fmt.Sprint("episode ", n), Prompt: fmt.Sprintf("act wake #%d", n), Evidence: "sda1 97%",
			}}}
		},
		plays: func(n int, results map[string]string, _ []string, _ model.Request) model.Answer {
			if len(results) > 0 {
				return agenttest.Say("I have told them.")
			}
			return agenttest.Do(agenttest.Call(1, "notify", fmt.Sprintf(`{"text":"sda1 is nearly full, %d"}`, n)))
		},
		says: []string{"sda1 is nearly full, N"},
		asks: 2,
	},
	// a call that somebody else must agree to
	"deploy": {
		cues: func(n int) []cue {
			return []cue{opened(n, "deploy"), approved(fmt.Sprintf("deploy %d-1", n), bob, "slack:T1:dm:U2")}
		},
		plays: func(n int, results map[string]string, _ []string, _ model.Request) model.Answer {
			if strings.HasPrefix(results["deploy-1"], "waiting for") {
				return agenttest.Say(fmt.Sprintf("deploy #%d: asked", n))
			}
			return agenttest.Do(calling(n, 1, "deploy"))
		},
		says: []string{"deploy #N: asked", "told: deploy done N-1"},
		asks: 3,
	},
	// more steps than a turn may have
	"limit": {
		cues: func(n int) []cue { return []cue{opened(n, "limit"), said(n, "continue", "continue")} },
		plays: func(n int, results map[string]string, _ []string, _ model.Request) model.Answer {
			if len(results) >= mostSteps+1 {
				return agenttest.Say(fmt.Sprintf("limit #%d: %s", n, brief(results, fmt.Sprint("read-", len(results)))))
			}
			return agenttest.Do(calling(n, len(results)+1, "read"))
		},
		says: []string{
			fmt.Sprintf("I stopped after %d steps, which is the limit for one turn. Say continue to let me go on, or say what to do instead.", mostSteps),
			fmt.Sprintf("limit #N: read done N-%d", mostSteps+1),
		},
		asks: mostSteps + 2,
	},
	// a long result, of which another page is read
	"page": {
		cues: func(n int) []cue { return []cue{opened(n, "page")} },
		plays: func(n int, results map[string]string, _ []string, _ model.Request) model.Answer {
			long, page := results["dump-1"], results["read_file-2"]
			switch id := way.FindStringSubmatch(long); {
			case page != "":
				line, _, _ := strings.Cut(page, "\n")
				return agenttest.Say(fmt.Sprintf("page #%d: %s", n, strings.TrimSpace(line)))
			case id != nil:
				return agenttest.Do(agenttest.Call(2, "read_file", fmt.Sprintf(`{"path":"result:%s","offset":700,"limit":1}`, id[2])))
			}
			return agenttest.Do(calling(n, 1, "dump"))
		},
		says: []string{"page #N: line 700 of N-1"},
		asks: 3,
	},
	// long words, which lead to a compaction
	"words": {
		cues: func(n int) []cue { return []cue{said(n, "words", fmt.Sprintf("act words #%d. %s", n, longWords))} },
		plays: func(n int, _ map[string]string, _ []string, _ model.Request) model.Answer {
			return agenttest.Say(fmt.Sprintf("words #%d: all right", n))
		},
		says: []string{"words #N: all right"},
		asks: 1,
	},
	// what is left of words after a compaction
	"recall": {
		cues: func(n int) []cue { return []cue{opened(n, "recall")} },
		plays: func(n int, _ map[string]string, _ []string, req model.Request) model.Answer {
			knows := slices.ContainsFunc(req.Messages, func(m model.Message) bool { return strings.Contains(m.Text, "They talked. It is ORD-99812") })
			return agenttest.Say(fmt.Sprintf("recall #%d: %t", n, knows))
		},
		says: []string{"recall #N: true"},
		asks: 1,
	},
	// a call that a hook refuses, after one whose result it rewrites
	"guarded": {
		cues: func(n int) []cue { return []cue{opened(n, "guarded")} },
		plays: inSteps("guarded", func(n int) [][]model.Call {
			return [][]model.Call{{calling(n, 1, "read"), calling(n, 2, "write"), calling(n, 3, "format")}, {calling(n, 4, "upsert")}}
		}),
		says: []string{"guarded #N: read done N-1; write done N-2 checked; not run; upsert done N-4"},
		asks: 3,
	},
}

// mostSteps is the limit of a turn. No act but the one about limits comes near it, even with steps lost in crashes.
const mostSteps = 6

// inSteps makes calls step by step, and tells what came of all of them.
func inSteps(name string, steps func(n int) [][]model.Call) plays {
	return func(n int, results map[string]string, _ []string, _ model.Request) model.Answer {
		var parts []string
		for _, calls := range steps(n) {
			for _, c := range calls {
				if results[c.ID] == "" {
					return agenttest.Do(calls...)
				}
				parts = append(parts, brief(results, c.ID))
			}
		}
		return agenttest.Say(fmt.Sprintf("%s #%d: %s", name, n, strings.Join(parts, "; ")))
	}
}

// brief is the beginning of a result.
func brief(results map[string]string, call string) string {
	text, _, _ := strings.Cut(results[call], "\n")
	text, _, _ = strings.Cut(text, ":")
	text, _, _ = strings.Cut(text, ". ")
	return text
}

var (
	actCue    = regexp.MustCompile(`act (\w+) #(\d+)`)
	cameOfIt  = regexp.MustCompile(`(?s)^\[bob approved the call .* What came of it:\n(.*)\]\n`)
	doneWords = regexp.MustCompile(`^(\w+) done (\S+)( checked)?$`)
)

// script answers by the act that a request belongs to.
func (program) script(req model.Request) model.Answer {
	if keep, yes := asksForSummary(req); yes {
		return agenttest.Say("They talked. It is ORD-99812, I think.\n" + keep)
	}
	results, words := map[string]string{}, []string(nil)
	for _, m := range slices.Backward(req.Messages) {
		if m.Role == model.ToolRole {
			if _, known := results[m.CallID]; !known {
				results[m.CallID] = m.Text
			}
		}
		if m.Role != model.User {
			continue
		}
		if came := cameOfIt.FindStringSubmatch(m.Text); came != nil {
			return agenttest.Say("told: " + came[1])
		}
		if cue := actCue.FindStringSubmatch(m.Text); cue != nil {
			n, _ := strconv.Atoi(cue[2])
			return acts[cue[1]].plays(n, results, words, req)
		}
		words = append(words, m.Text)
	}
	return agenttest.Say("I do not know what this is about")
}

// cues are all that is done from outside, in order.
func (p program) cues() []cue {
	var all []cue
	for i, name := range p.acts {
		all = append(all, acts[name].cues(i+1)...)
	}
	return all
}

// says is what the person reads when nothing is disturbed.
func (p program) says() []string {
	var all []string
	for i, name := range p.acts {
		for _, line := range acts[name].says {
			all = append(all, strings.ReplaceAll(line, "N", fmt.Sprint(i+1)))
		}
	}
	return all
}

// asks is how often the model is asked when nothing is disturbed, besides for summaries.
func (p program) asks() (n int) {
	for _, name := range p.acts {
		n += acts[name].asks
	}
	return n
}

// effects are those of the tools, by name.
var effects = map[string]agent.Effect{
	"read": agent.Read, "look": agent.Read, "slow": agent.Read, "dump": agent.Read, "read_file": agent.Read,
	"upsert": agent.Idempotent, "notify": agent.Idempotent,
	"write": agent.Effectful, "delete": agent.Effectful, "format": agent.Effectful, "deploy": agent.Effectful,
}

// config is what the program is made of, for one life of it on a stage.
func (p program) config(s *stage) agent.Config {
	c := agent.Config{
		Store: s.store, Model: s, Spec: agent.ModelSpec{Window: p.window, MaxOutput: 1000},
		Limits: agent.Limits{Steps: mostSteps, ToolCalls: 50, Errors: 3}, Log: s.log(),
	}
	if p.priced {
		c.Spec.PriceIn, c.Spec.PriceOut = agent.PerMillion(2), agent.PerMillion(12)
	}
	policies := map[string]agent.Policy{"delete": agent.PolicyAsk, "deploy": agent.PolicySecond}
	for _, name := range []string{"read", "look", "slow", "dump", "upsert", "write", "delete", "format", "deploy"} {
		c.Tools = append(c.Tools, s.tool(agenttest.Tool(name, effects[name], policies[name], func(ctx context.Context, in agent.Invocation) (agent.Result, error) {
			switch name {
			case "slow":
				<-ctx.Done()
				return agent.Result{}, ctx.Err()
			case "dump":
				return agent.Result{Text: dump(xOf(in.Arguments))}, nil
			}
			return agent.Result{Text: name + " done " + xOf(in.Arguments)}, nil
		})))
	}
	saved := func(ctx context.Context, session, id string) (text string, found bool, err error) {
		err = s.store.View(ctx, func(tx memory.Tx) (err error) {
			text, found, err = agent.Saved(tx, session, id)
			return err
		})
		return text, found, err
	}
	for _, tool := range workspace.Tools(workspace.Config{Dirs: workspace.Dirs{Dir: s.dir}, Saved: saved}) {
		if tool.Name == "read_file" {
			c.Tools = append(c.Tools, s.tool(tool))
		}
	}
	c.Tools = append(c.Tools, s.tool(notify.Voice{Store: s.store}.Tool()))
	if p.hooked {
		for _, at := range []agent.HookPoint{agent.BeforeStep, agent.BeforeModel, agent.BeforeTool, agent.AfterTool, agent.AfterStep} {
			c.Hooks = append(c.Hooks, s.hook(at))
		}
	}
	return c
}

// ruled is what the hooks of the conversation decide.
func ruled(q agent.HookQuestion) agent.Ruling {
	switch {
	case q.At == agent.BeforeModel:
		return agent.Ruling{Append: "[be brief]"}
	case q.At == agent.BeforeTool && q.Tool == "format":
		return agent.Ruling{Refuse: "nobody formats anything here"}
	case q.At == agent.AfterTool && q.Tool == "write" && strings.HasPrefix(xOf(q.Arguments), "1-"):
		checked := q.Result + " checked"
		return agent.Ruling{Result: &checked}
	}
	return agent.Ruling{}
}

// dump is a result of about 40 KB.
func dump(x string) string {
	var b strings.Builder
	for i := range 1400 {
		fmt.Fprintf(&b, "%-28s\n", fmt.Sprintf("line %d of %s", i+1, x))
	}
	return b.String()
}

// xOf is what tells one call of a tool from another.
func xOf(arguments []byte) string {
	var in struct{ X, Text, Path string }
	if json.Unmarshal(arguments, &in) != nil {
		return string(arguments)
	}
	return in.X + in.Text + in.Path
}
