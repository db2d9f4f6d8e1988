//go:build linux || darwin || freebsd

package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

// asServer is the argument with which this test is an MCP server; the manner and a file follow.
const asServer = "as-mcp-server"

func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == asServer {
		serveAs(os.Args[2], os.Args[3])
		return
	}
	goleak.VerifyTestMain(m)
}

// serveAs is the server's process.
func serveAs(manner, file string) {
	if lies, found := strings.CutPrefix(manner, "liar-"); found {
		(&liar{manner: lies, file: file}).serve()
		return
	}
	if manner == "mute" {
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	if manner == "broken" {
		fmt.Println("this is no JSON-RPC")
		time.Sleep(time.Hour)
	}
	_ = newServer(manner, file).Run(context.Background(), &mcp.StdioTransport{})
}

// newServer is one that behaves in some manner.
func newServer(manner, file string) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ServerOptions{PageSize: 2})
	add := func(name, description, schema string, run func(arguments map[string]any) *mcp.CallToolResult) {
		server.AddTool(&mcp.Tool{Name: name, Description: description, InputSchema: json.RawMessage(schema), Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
			func(ctx context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				var arguments map[string]any
				if err := json.Unmarshal(request.Params.Arguments, &arguments); err != nil {
					return nil, err
				}
				if got := run(arguments); got != nil {
					return got, nil
				}
				<-ctx.Done()
				return nil, ctx.Err()
			})
	}
	const anything = `{"type":"object"}`
	say := func(text string) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
	}
	description := "Says it again."
	if text, err := os.ReadFile(file); err == nil && len(text) > 0 {
		description = string(text)
	}
	add("echo", description, `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`, func(a map[string]any) *mcp.CallToolResult {
		return say(fmt.Sprint(a["text"]))
	})
	add("fail", "Fails.", anything, func(map[string]any) *mcp.CallToolResult {
		result := say("it did not work")
		result.IsError = true
		return result
	})
	add("env", "Tells its environment.", anything, func(map[string]any) *mcp.CallToolResult { return say(strings.Join(os.Environ(), "\n")) })
	add("media", "Gives all kinds.", anything, func(map[string]any) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{
			&mcp.TextContent{Text: "one"}, &mcp.ImageContent{MIMEType: "image/png", Data: []byte("1234")}, &mcp.AudioContent{MIMEType: "audio/ogg", Data: []byte("12")},
			&mcp.ResourceLink{URI: "file:///x", Name: "x"}, &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "a:b", Text: "within"}},
		}}
	})
	add("shape", "Gives data.", anything, func(map[string]any) *mcp.CallToolResult {
		return &mcp.CallToolResult{StructuredContent: map[string]any{"a": 1}}
	})
	add("flood", "Gives much.", anything, func(map[string]any) *mcp.CallToolResult { return say(strings.Repeat("flood ", 2*maxMessage/6)) })
	add("long", "Gives a lot.", anything, func(map[string]any) *mcp.CallToolResult { return say(strings.Repeat("long ", 100_000)) })
	add("hang", "Never ends.", anything, func(map[string]any) *mcp.CallToolResult { return nil })
	add("freeze", "Stops the server.", anything, func(map[string]any) *mcp.CallToolResult {
		_ = os.Stdout.Close() // from now on nobody hears it
		return say("unheard")
	})
	add("crash", "Ends the server.", anything, func(map[string]any) *mcp.CallToolResult {
		os.Exit(3)
		return nil
	})
	add("child", "Leaves a process.", anything, func(map[string]any) *mcp.CallToolResult {
		cmd := exec.Command("sleep", "1000")
		if err := cmd.Start(); err != nil {
			return say(err.Error())
		}
		return say(fmt.Sprint(cmd.Process.Pid))
	})
	add("reads-a_file", "Has a dash.", anything, func(map[string]any) *mcp.CallToolResult { return say("dash") })
	add("reads_a-file", "Has another.", anything, func(map[string]any) *mcp.CallToolResult { return say("other") })
	add("chatty", strings.Repeat("x", maxDescription+1), anything, func(map[string]any) *mcp.CallToolResult { return say("") })
	add("outer", "Has a schema that leads out.", `{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}`, func(map[string]any) *mcp.CallToolResult { return say("") })
	return server
}
