package workspace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"nudge/agent"
	"nudge/agent/secret"
	"nudge/memory"
)

// Bounds of what one call reads, writes and lists.
const (
	maxWrite   = 1 << 20 // bytes
	maxEntries = 500
)

// Overwrite is the name of the policy of write_file for a file that exists.
const Overwrite = "overwrite_file"

// pathArguments are what every tool here is told.
type pathArguments struct {
	Path string `json:"path"`
}

// Config is what the tools are made of.
type Config struct {
	Dirs Dirs
	// Saved finds the whole of a long result by its id, among those of one session. It may be called concurrently. The
	// model does not read its error. Nil means that none is to be had.
	Saved func(ctx context.Context, session, id string) (text string, found bool, err error)
	// Attached opens a file by its id, among those that were attached in one session. It may be called concurrently. The
	// model reads its error. Nil means that none is to be had.
	Attached func(ctx context.Context, session, id string) (*agent.Content, error)
	// Store keeps which files strangers' text may be in. Nil means that it is not kept, and that no file of the folders counts.
	Store memory.Store
	// Trusts reports whether what somebody has had written is outside text for nobody, as with owners. It may be called
	// concurrently. Nil means that it is outside text for everybody else.
	Trusts func(agent.PersonID) bool

	// Gate keeps others from changing a folder while something is written to it or deleted. Nil means that nobody else does.
	Gate *Gate

	tallies *tallies // of the tools; see Tools
}

// Hold waits until a person's folder may be looked into by what runs there, or be changed by it alone; see [Gate.Enter].
func (c Config) Hold(ctx context.Context, person agent.PersonID, alone bool) (leave func(), err error) {
	if c.Gate == nil {
		return func() {}, nil
	}
	return c.Gate.Enter(ctx, c.Dirs.folder(person), alone)
}

// alone waits until a call alone changes its person's folder, and says whether it is still the one that it was.
func (c Config) alone(ctx context.Context, in agent.Invocation) (leave func(), err error) {
	leave, err = c.Hold(ctx, in.Person.ID, true)
	if err != nil {
		return nil, agent.NotRun(err)
	}
	if err := in.Stands(); err != nil {
		leave()
		return nil, agent.NotRun(err)
	}
	return leave, nil
}

// Tools makes the tools for the people's folders. The policy of a call depends on what is there when it is judged,
// and its digest on the content: judge it again, and compare the digest, right before it runs.
//
// Writes are held to what a folder may hold: 10,000 files and folders and 256 MiB, ten times that where one is shared. Only one
// set of tools at a time may write to a folder, or it can come to hold a little more.
func Tools(c Config) []agent.Tool {
	c.tallies = newTallies(c.Dirs)
	return c.tools()
}

func (c Config) tools() []agent.Tool {
	return []agent.Tool{c.listFiles(), c.readFile(), c.writeFile(), c.deleteFile()}
}

func (c Config) listFiles() agent.Tool {
	return agent.Tool{
		Spec: agent.Spec{
			Name:        "list_files",
			Description: "Lists one folder of the workspace: names, sizes in bytes, folders with a slash.",
			Schema: json.RawMessage(`{"type":"object","properties":{` +
				`"path":{"type":"string","description":"Relative to the workspace; the workspace itself when left out."}},` +
				`"additionalProperties":false}`),
			Effect: agent.Read,
			Labels: agent.Labels{Private: true, Own: !c.Dirs.Shared, Outside: true},
		},
		Run: func(ctx context.Context, in agent.Invocation) (agent.Result, error) {
			return within(c.Dirs, in, cleaned, func(root *os.Root, name string) (string, error) { return list(ctx, root, name) })
		},
		// Names are words as well.
		LabelsOf: func(in agent.Invocation) agent.Labels {
			return agent.Labels{Private: true, Own: !c.Dirs.Shared, Outside: c.Outside(in.Person.ID, "")}
		},
	}
}

func (c Config) readFile() agent.Tool {
	return agent.Tool{
		Spec: agent.Spec{
			Name: "read_file",
			Description: "Reads a text file of the workspace, an attached one as " + agent.FilePrefix + "ID, or a saved long result as " +
				agent.SavedPrefix + "ID, or some lines of it; 20 KiB at once.",
			Schema: json.RawMessage(`{"type":"object","properties":{` +
				`"path":{"type":"string"},` +
				`"offset":{"type":"integer","minimum":1,"maximum":1000000000,"description":"The first line to read."},` +
				`"limit":{"type":"integer","minimum":1,"maximum":1000000000,"description":"How many lines to read."}},` +
				`"required":["path"],"additionalProperties":false}`),
			Effect: agent.Read,
			Labels: agent.Labels{Private: true, Own: !c.Dirs.Shared, Outside: true},
			Pages:  true,
		},
		Run: func(ctx context.Context, in agent.Invocation) (agent.Result, error) {
			var arguments struct {
				pathArguments
				span
			}
			if err := in.Decode(&arguments); err != nil {
				return agent.Result{}, err
			}
			if id, ok := strings.CutPrefix(arguments.Path, agent.FilePrefix); ok {
				text, err := c.attached(ctx, in.Session, id, arguments.span)
				return agent.Result{Text: text}, err
			}
			if id, ok := strings.CutPrefix(arguments.Path, agent.SavedPrefix); ok {
				text, err := c.result(ctx, in.Session, id, arguments.span)
				return agent.Result{Text: text}, err
			}
			return within(c.Dirs, in, cleanedFile, func(root *os.Root, name string) (string, error) {
				return read(ctx, root, name, arguments.span)
			})
		},
		// Who attached a file need not have written it.
		LabelsOf: func(in agent.Invocation) agent.Labels {
			return agent.Labels{Private: true, Own: c.readsOwn(in), Outside: c.readsOutside(in)}
		},
	}
}

// readsOwn reports whether a call of read_file reads what is its person's alone. What was attached in the conversation,
// or read there before, is not.
func (c Config) readsOwn(in agent.Invocation) bool {
	var arguments pathArguments
	if err := in.Decode(&arguments); err != nil {
		return !c.Dirs.Shared
	}
	return !c.Dirs.Shared && !strings.HasPrefix(arguments.Path, agent.FilePrefix) && !strings.HasPrefix(arguments.Path, agent.SavedPrefix)
}

// readsOutside reports whether a call of read_file reads what strangers may have written.
func (c Config) readsOutside(in agent.Invocation) bool {
	var arguments pathArguments
	if err := in.Decode(&arguments); err != nil {
		return true
	}
	if saved, ok := strings.CutPrefix(arguments.Path, agent.SavedPrefix); ok {
		return agent.SavedOutside(saved)
	}
	name, err := cleanedFile(arguments.Path)
	return strings.HasPrefix(arguments.Path, agent.FilePrefix) || err == nil && c.Outside(in.Person.ID, name)
}

func (c Config) writeFile() agent.Tool {
	return agent.Tool{
		Spec: agent.Spec{
			Name:        "write_file",
			Description: "Writes a whole text file of the workspace, at most 1 MiB. Folders on the way are made; a file that exists is replaced.",
			Schema: json.RawMessage(`{"type":"object","properties":{` +
				`"path":{"type":"string"},` +
				`"content":{"type":"string"}},` +
				`"required":["path","content"],"additionalProperties":false}`),
			Effect: agent.Effectful,
			Policy: agent.PolicyAsk,
		},
		Run:    c.runWrite,
		Judge:  c.judgeWrite,
		Card:   c.cardOfWrite,
		Digest: func(in agent.Invocation) string { return digestOf(c.Dirs, in) },
	}
}

type contentArguments struct {
	Content string `json:"content"`
}

func (c Config) runWrite(ctx context.Context, in agent.Invocation) (agent.Result, error) {
	var with contentArguments
	if err := in.Decode(&with); err != nil {
		return agent.Result{}, err
	}
	var path string
	result, err := within(c.Dirs, in, cleanedFile, func(root *os.Root, name string) (string, error) {
		path = name
		return c.writeWithin(ctx, in, root, name, with.Content)
	})
	if err == nil {
		result.Commit = c.afterWrite(in, path)
	}
	return result, err
}

// writeWithin writes a file of a folder that has room for it. Others who write to the folder wait.
func (c Config) writeWithin(ctx context.Context, in agent.Invocation, root *os.Root, name, content string) (text string, err error) {
	leave, err := c.alone(ctx, in)
	if err != nil {
		return "", err
	}
	defer leave()
	tally := c.tallies.lock(c.Dirs.folder(in.Person.ID))
	defer tally.mu.Unlock()
	if err := c.Dirs.writable(in, name); err != nil {
		return "", err
	}
	change, err := growth(root, name, len(content))
	if err == nil {
		err = tally.admit(ctx, root, change, c.tallies.most)
	}
	if err == nil {
		err = c.beforeWrite(ctx, in, name)
	}
	if err != nil {
		return "", err
	}
	text, err = write(ctx, root, name, content)
	tally.changed(change, err)
	return text, err
}

func (c Config) judgeWrite(in agent.Invocation) (policy agent.Policy, name string, err error) {
	_, err = within(c.Dirs, in, cleanedFile, func(root *os.Root, path string) (string, error) {
		if policy, name, err = judgeWrite(root, path); name == Overwrite && bytes.Contains(in.Arguments, []byte(secret.Mark)) {
			err = fmt.Errorf("%q is not replaced: the new content has %s, which would take the place of what was hidden from you", path, secret.Mark)
		}
		if err == nil {
			err = c.Dirs.writable(in, path)
		}
		if err == nil {
			err = c.judgeRoom(in, root, path) // nobody is asked about what cannot be
		}
		return "", err
	})
	return policy, name, err
}

// judgeRoom says why a write does not fit into its folder; nil when it does.
func (c Config) judgeRoom(in agent.Invocation, root *os.Root, name string) error {
	var with contentArguments
	if err := in.Decode(&with); err != nil {
		return err
	}
	change, err := growth(root, name, len(with.Content))
	if err != nil {
		return err
	}
	tally := c.tallies.lock(c.Dirs.folder(in.Person.ID))
	defer tally.mu.Unlock()
	return tally.admit(context.Background(), root, change, c.tallies.most)
}

// notDiffered is on the card of a write where others read along, who are not to see what stands in a person's own file.
const notDiffered = "It replaces a file of yours. What would change is not shown, since others here would see what stands in it."

// cardOfWrite is what a write would change, for the person who is asked.
func (c Config) cardOfWrite(in agent.Invocation) string {
	var with contentArguments
	if in.Decode(&with) != nil {
		return ""
	}
	said, err := within(c.Dirs, in, cleanedFile, func(root *os.Root, name string) (string, error) {
		if _, of, err := judgeWrite(root, name); err == nil && of == Overwrite && !c.Dirs.Shared && !agent.Direct(in.Address) {
			return notDiffered, nil
		}
		return difference(root, name, with.Content)
	})
	if err != nil {
		return ""
	}
	return said.Text
}

func (c Config) deleteFile() agent.Tool {
	dirs := c.Dirs
	return agent.Tool{
		Spec: agent.Spec{
			Name:        "delete_file",
			Description: "Deletes a file of the workspace, or a folder that is empty. It cannot be brought back.",
			Schema: json.RawMessage(`{"type":"object","properties":{` +
				`"path":{"type":"string"}},` +
				`"required":["path"],"additionalProperties":false}`),
			Effect: agent.Effectful,
			Policy: agent.PolicyAsk,
		},
		Run: func(ctx context.Context, in agent.Invocation) (agent.Result, error) {
			var gone func(memory.Tx) error
			result, err := within(dirs, in, cleaned, func(root *os.Root, name string) (string, error) {
				gone = c.afterDelete(in, root, name)
				return c.removeWithin(ctx, in, root, name)
			})
			if err == nil {
				result.Commit = gone
			}
			return result, err
		},
		Judge: func(in agent.Invocation) (agent.Policy, string, error) {
			_, err := within(dirs, in, cleaned, func(root *os.Root, name string) (string, error) { return "", judgeDelete(root, name) })
			return agent.PolicyAsk, "", err
		},
		Digest: func(in agent.Invocation) string { return digestOf(dirs, in) },
	}
}

// removeWithin deletes something of a folder. Others who write to the folder wait.
func (c Config) removeWithin(ctx context.Context, in agent.Invocation, root *os.Root, name string) (string, error) {
	leave, err := c.alone(ctx, in)
	if err != nil {
		return "", err
	}
	defer leave()
	tally := c.tallies.lock(c.Dirs.folder(in.Person.ID))
	defer tally.mu.Unlock()
	change := shrinkage(root, name)
	text, err := remove(ctx, root, name)
	tally.changed(change, err)
	return text, err
}

// within does something to the path of a call in the folder of the call's person.
func within(dirs Dirs, in agent.Invocation, clean func(string) (string, error), do func(*os.Root, string) (string, error)) (agent.Result, error) {
	var arguments pathArguments
	if err := in.Decode(&arguments); err != nil {
		return agent.Result{}, err
	}
	name, err := clean(arguments.Path)
	if err != nil {
		return agent.Result{}, err
	}
	root, err := dirs.Root(in.Person.ID)
	if err != nil {
		return agent.Result{}, errors.New("the workspace cannot be opened") // the reason has a path in it
	}
	defer root.Close()
	text, err := do(root, name)
	return agent.Result{Text: text}, err
}
