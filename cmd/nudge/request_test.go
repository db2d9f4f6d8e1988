package main

import (
	"testing"

	"nudge/agent/model/modeltest"
)

// mostBytes is how long the first request of a conversation may be with the default tools.
const mostBytes = 5 << 10

func TestTheFirstRequestIsShort(t *testing.T) {
	server := modeltest.NewServer(t, func(int, modeltest.ChatRequest) modeltest.Reply { return modeltest.Reply{Text: "hello"} })
	p := newPlace(t, server, "")
	k := p.chat()
	k.say("hello")
	k.until("settled")
	k.end()
	request := server.Requests()[0]
	var tools []string
	for _, tool := range request.Tools {
		tools = append(tools, tool.Function.Name)
	}
	t.Logf("the first request has %d bytes, with the tools %v", len(request.Body), tools)
	if len(request.Body) > mostBytes {
		t.Errorf("the first request has %d bytes, want %d at most; its %d tools are %v", len(request.Body), mostBytes, len(tools), tools)
	}
	if len(tools) < 4 {
		t.Errorf("only the tools %v are offered", tools)
	}
}
