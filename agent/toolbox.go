package agent

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"nudge/agent/model"
	"nudge/agent/secret"
)

// toolbox has the tools by name, with their schemas compiled.
type toolbox struct {
	order  []*Tool
	named  map[string]*boxed
	person []model.Tool // those offered in turns that a person began
	// secrets are not in what tools give.
	secrets *secret.Redactor
}

type boxed struct {
	*Tool
	schema *Schema
}

var toolName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,63}$`)

// newToolbox checks the tools and puts the core's own to them.
func newToolbox(c Config) (*toolbox, error) {
	box := &toolbox{named: map[string]*boxed{}, secrets: c.Secrets}
	for _, tool := range append(slices.Clone(c.Tools), askPersonTool(), planTools()) {
		if slices.Contains(c.Deny, tool.Name) || (len(c.Only) > 0 && !slices.Contains(c.Only, tool.Name)) {
			continue
		}
		if err := box.put(tool); err != nil {
			return nil, err
		}
	}
	box.person = box.offer(&turn{})
	return box, nil
}

func (b *toolbox) put(tool Tool) error {
	switch {
	case !toolName.MatchString(tool.Name):
		return fmt.Errorf("tool %q: a name has letters, digits and underscores, 64 at most", tool.Name)
	case b.named[tool.Name] != nil:
		return fmt.Errorf("tool %s: there are two of that name", tool.Name)
	case tool.Run == nil && tool.Name != askPerson:
		return fmt.Errorf("tool %s: it has no function", tool.Name)
	case !slices.Contains([]Effect{Read, Idempotent, Effectful}, tool.Effect):
		return fmt.Errorf("tool %s: its effect must be declared", tool.Name)
	}
	schema, err := CompileSchema(tool.Schema)
	if err != nil {
		return fmt.Errorf("tool %s: %w", tool.Name, err)
	}
	b.order = append(b.order, &tool)
	b.named[tool.Name] = &boxed{&tool, schema}
	return nil
}

// offers reports whether a tool is offered in a turn. A wake has the tools that only read, those made for it and
// those that its heartbeat names.
func (b *toolbox) offers(tool *Tool, t *turn) bool {
	if t.useless[tool.Name] {
		return false
	}
	if t.wake == nil {
		return tool.Place != InHeartbeat
	}
	return tool.Place == InHeartbeat ||
		tool.Place == Anywhere && (tool.Effect == Read || slices.Contains(t.wake.Tools, tool.Name))
}

// offered is what the model reads of the tools in a turn, always in the same order. It must not be changed.
func (b *toolbox) offered(t *turn) []model.Tool {
	if t.wake == nil && len(t.useless) == 0 {
		return b.person
	}
	return b.offer(t)
}

func (b *toolbox) offer(t *turn) []model.Tool {
	var tools []model.Tool
	for _, tool := range b.order {
		if b.offers(tool, t) {
			tools = append(tools, model.Tool{Name: tool.Name, Description: tool.Description, Schema: tool.Schema})
		}
	}
	return tools
}

// names are those of all tools.
func (b *toolbox) names() []string {
	names := make([]string, 0, len(b.order))
	for _, tool := range b.order {
		names = append(names, tool.Name)
	}
	return names
}

// weighTools is about how many bytes tools have in a request.
func weighTools(tools []model.Tool) int {
	n := 0
	for _, tool := range tools {
		n += len(tool.Name) + len(tool.Description) + len(tool.Schema) + 64
	}
	return n
}

// prepare finds a call's tool and checks its arguments. The error is for the model.
func (b *toolbox) prepare(t *turn, c *call) error {
	if c.tool != nil {
		return nil
	}
	tool := b.named[c.Name]
	if tool == nil || !b.offers(tool.Tool, t) || slices.Contains(t.hidden, c.Name) {
		var names []string
		for _, known := range b.offered(t) {
			if !slices.Contains(t.hidden, known.Name) {
				names = append(names, known.Name)
			}
		}
		if names == nil {
			return fmt.Errorf("not run: there is no tool %q, nor any other", c.Name)
		}
		return fmt.Errorf("not run: there is no tool %q; the tools are %s", c.Name, strings.Join(names, ", "))
	}
	arguments, err := tool.schema.Check(c.Arguments)
	if err != nil {
		return errors.New("not run: " + err.Error())
	}
	c.tool, c.arguments = tool.Tool, arguments
	return nil
}
