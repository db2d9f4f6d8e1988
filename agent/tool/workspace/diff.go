package workspace

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"nudge/agent"
)

// Bounds of the difference on a card. Who wants to see more reads the arguments beside it, or the file.
const (
	maxCompared  = 128 << 10 // bytes of either side; finding the least difference of more takes long
	maxDiffLines = 80
	maxDiffLine  = 300 // bytes
)

// difference says what a write would change, for who decides about it. What is approved is bound to the file as it is now.
func difference(root *os.Root, name, content string) (string, error) {
	file, info, err := openRegular(root, name)
	if err != nil {
		if gone, lookErr := replaceable(root, name); gone == nil && lookErr == nil {
			return fmt.Sprintf("%q is a new file of %d bytes.", name, len(content)), nil
		}
		return "", err
	}
	defer file.Close()
	sizes := fmt.Sprintf("%q has %d bytes now and would have %d.", name, info.Size(), len(content))
	if info.Size() > maxCompared || len(content) > maxCompared {
		return sizes, nil
	}
	before, err := io.ReadAll(io.LimitReader(file, maxCompared+1))
	switch {
	case err != nil:
		return "", said(err, "read", name)
	case len(before) > maxCompared || agent.Binary(string(before)) || agent.Binary(content):
		return sizes, nil
	case string(before) == content:
		return fmt.Sprintf("Nothing in %q would change.", name), nil
	}
	diff := udiff.Unified("before", "after", string(before), content)
	_, hunks, found := strings.Cut(diff, "\n+++ after\n")
	if !found {
		return "", errors.New("compare the file: the difference cannot be read")
	}
	return fmt.Sprintf("What would change in %q:\n%s", name, short(hunks)), nil
}

// short is a difference of not too many lines, none of them too long. That something is missing is said where it is.
func short(hunks string) string {
	lines := strings.Split(strings.TrimRight(hunks, "\n"), "\n")
	more := len(lines) - maxDiffLines
	if more > 0 {
		lines = lines[:maxDiffLines]
	}
	for i, line := range lines {
		if len(line) > maxDiffLine {
			lines[i] = fmt.Sprintf("%s[… %d bytes more …]", agent.Head(line, maxDiffLine), len(line)-len(agent.Head(line, maxDiffLine)))
		}
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("[… %d lines more; the arguments have all of the new content …]", more))
	}
	return strings.Join(lines, "\n")
}
