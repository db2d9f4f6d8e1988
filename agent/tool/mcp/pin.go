package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"nudge/agent"
	"nudge/memory"
)

// Bounds of how a tool may describe itself: the model reads that with every request.
const (
	maxDescription = 2 << 10  // bytes
	maxSchema      = 16 << 10 // bytes
)

// tablePins keeps how tools describe themselves, by server and tool.
const tablePins memory.Rows[pin] = "mcp"

func pinKey(server, tool string) string { return server + " " + tool }

// look is how a tool describes itself.
type look struct {
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
	Claims      string          `json:"claims,omitempty"`
}

// digest stands for all that it says.
func (l look) digest() string {
	said, err := json.Marshal(l)
	if err != nil {
		return "none"
	}
	sum := sha256.Sum256(said)
	return hex.EncodeToString(sum[:])
}

// pin is how a tool described itself when it was first seen, or when somebody agreed to it.
type pin struct {
	look
	Digest string `json:"digest"`
	Agreed bool   `json:"agreed,omitempty"` // somebody has read it and agreed; until then it is outside text
	Anew   *look  `json:"anew,omitempty"`   // how it describes itself now, where that is another way
}

// lookOf checks how a tool describes itself. The error says why it is not offered.
func lookOf(t *mcp.Tool) (look, error) {
	schema, err := json.Marshal(t.InputSchema) // its maps are written in order
	switch {
	case err != nil:
		return look{}, fmt.Errorf("its schema cannot be read: %w", err)
	case len(schema) > maxSchema:
		return look{}, fmt.Errorf("its schema has %d bytes, at most %d are taken", len(schema), maxSchema)
	case len(t.Description) > maxDescription:
		return look{}, fmt.Errorf("its description has %d bytes, at most %d are taken", len(t.Description), maxDescription)
	}
	if _, err := agent.CompileSchema(schema); err != nil {
		return look{}, err
	}
	return look{Description: strings.ToValidUTF8(strings.TrimSpace(t.Description), "\ufffd"), Schema: schema, Claims: claims(t.Annotations)}, nil
}

// claims puts what a server says of what its tool does into words.
func claims(a *mcp.ToolAnnotations) string {
	if a == nil {
		return ""
	}
	var parts []string
	if a.ReadOnlyHint {
		parts = append(parts, "only reads")
	}
	if a.DestructiveHint != nil && *a.DestructiveHint {
		parts = append(parts, "may destroy")
	}
	if a.IdempotentHint {
		parts = append(parts, "may be repeated")
	}
	return strings.Join(parts, ", ")
}

// see takes up how a tool describes itself now. fresh says that it is another way than was known before.
func see(tx memory.Tx, server, tool string, now look) (p pin, fresh bool, err error) {
	p, found, err := tablePins.Get(tx, pinKey(server, tool))
	if err != nil {
		return p, false, err
	}
	digest := now.digest()
	switch {
	case !found:
		p = pin{look: now, Digest: digest}
	case p.Digest == digest && p.Anew == nil:
		return p, false, nil
	case p.Digest == digest:
		p.Anew = nil // it says again what it did
	case p.Anew != nil && p.Anew.digest() == digest:
		return p, false, nil
	default:
		p.Anew, fresh = &now, true
	}
	return p, fresh, tablePins.Put(tx, pinKey(server, tool), p)
}

// Change is a tool that describes itself as nobody has agreed to.
type Change struct {
	Tool          string // as its server names it
	Before, After string // all that it says, on lines; Before is "" for one that has always said so
	digest        string // of what it says now
}

// Changes lists the tools of a server that describe themselves as nobody has agreed to: anew, or since they were first seen.
func Changes(tx memory.Tx, server string) ([]Change, error) {
	var changes []Change
	err := eachPin(tx, server, func(tool string, p pin) error {
		switch {
		case p.Anew != nil:
			changes = append(changes, Change{tool, p.look.text(), p.Anew.text(), p.Anew.digest()})
		case !p.Agreed:
			changes = append(changes, Change{tool, "", p.look.text(), p.Digest})
		}
		return nil
	})
	return changes, err
}

// Agree takes how tools of a server describe themselves for good, as far as that is still what somebody was shown. It
// returns how many those are.
func Agree(tx memory.Tx, server string, shown []Change) (agreed int, err error) {
	for _, c := range shown {
		p, found, err := tablePins.Get(tx, pinKey(server, c.Tool))
		if err != nil {
			return agreed, err
		}
		now := p.look
		if p.Anew != nil {
			now = *p.Anew
		}
		if !found || p.Anew == nil && p.Agreed || now.digest() != c.digest {
			continue
		}
		if err := tablePins.Put(tx, pinKey(server, c.Tool), pin{look: now, Digest: c.digest, Agreed: true}); err != nil {
			return agreed, err
		}
		agreed++
	}
	return agreed, nil
}

func eachPin(tx memory.Tx, server string, fn func(tool string, p pin) error) error {
	prefix := pinKey(server, "")
	return tablePins.Scan(tx, prefix, func(key string, p pin) error { return fn(strings.TrimPrefix(key, prefix), p) })
}

// text is all that a tool says, for people.
func (l look) text() string {
	text := l.Description + "\n" + string(l.Schema)
	if l.Claims != "" {
		text += "\nIt claims that it " + l.Claims + "."
	}
	return text
}
