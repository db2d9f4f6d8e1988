package schedule

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The values of [Spec.On].
const (
	OnChange = "change" // wake when the condition becomes true
	OnTrue   = "true"   // wake at every tick at which it is true
)

// KindAlways is the kind of the condition that is true at every tick.
const KindAlways = "always"

const (
	checkTimeout = 10 * time.Second
	maxNested    = 4  // conditions within conditions
	maxOf        = 32 // conditions side by side
)

// Spec describes a condition. Which fields belong to it depends on its kind. In JSON the durations are written as
// texts such as "90s", "24h" or "7d".
type Spec struct {
	Kind     string        `json:"kind"`               // command, http, file, expr, idle, always, all, any
	On       string        `json:"on,omitempty"`       // [OnChange] when empty
	Cooldown time.Duration `json:"cooldown,omitempty"` // after a wake that ended well no other before this has passed
	Timeout  time.Duration `json:"timeout,omitempty"`  // of one check; 0 means 10 s

	Run        []string          `json:"run,omitempty"`        // command: the program and its arguments; no shell
	Command    string            `json:"command,omitempty"`    // command: in place of Run the name of one that the config prepared
	Parameters map[string]string `json:"parameters,omitempty"` // command: the values of that one's parameters
	URL        string            `json:"url,omitempty"`        // http
	Select     string            `json:"select,omitempty"`     // http: a path into the JSON that is compared
	Status     int               `json:"status,omitempty"`     // http: the status that is wanted
	Path       string            `json:"path,omitempty"`       // file
	Test       string            `json:"test,omitempty"`       // file: exists, missing, changed, grows, older_than
	Age        time.Duration     `json:"age,omitempty"`        // file: for older_than
	Expr       string            `json:"expr,omitempty"`       // expr
	After      time.Duration     `json:"after,omitempty"`      // idle
	Of         []Spec            `json:"of,omitempty"`         // all, any
}

// kindKeys are the keys that each kind may have besides kind, on, cooldown and timeout.
var kindKeys = map[string][]string{
	"command":  {"run", "command", "parameters"},
	"http":     {"url", "select", "status"},
	"file":     {"path", "test", "age"},
	"expr":     {"expr"},
	"idle":     {"after"},
	KindAlways: {},
	"all":      {"of"},
	"any":      {"of"},
}

// FileTests are the values of [Spec.Test].
var FileTests = []string{"exists", "missing", "changed", "grows", "older_than"}

// Always reports whether the condition is true at every tick.
func (s Spec) Always() bool { return s.Kind == KindAlways }

// Limit gives the longest that one check may take.
func (s Spec) Limit() time.Duration {
	if s.Timeout == 0 {
		return checkTimeout
	}
	return s.Timeout
}

// Level reports whether every tick wakes at which the condition is true, not only the first.
func (s Spec) Level() bool { return s.On == OnTrue || s.Always() }

// Validate checks the description. Its error names the key at fault, such as heartbeat.condition.kind.
func (s Spec) Validate() error { return s.validate("heartbeat.condition", 0) }

func (s Spec) validate(key string, depth int) error {
	if s.Kind == "" && reflect.DeepEqual(s, Spec{}) {
		return errors.New(key + `: no condition, no wake; write kind = "always" to wake at every tick`)
	}
	allowed, known := kindKeys[s.Kind]
	if !known {
		return fmt.Errorf("%s.kind: %q is none of command, http, file, expr, idle, always, all, any", key, s.Kind)
	}
	for _, given := range s.given() {
		if !slices.Contains(allowed, given) {
			return fmt.Errorf("%s.%s: does not belong to a condition of kind %s", key, given, s.Kind)
		}
	}
	switch {
	case s.On != "" && s.On != OnChange && s.On != OnTrue:
		return fmt.Errorf("%s.on: %q is neither change nor true", key, s.On)
	case s.Cooldown < 0:
		return errors.New(key + ".cooldown: is below zero")
	case s.Timeout < 0 || s.Timeout > time.Hour:
		return errors.New(key + ".timeout: is below zero or above an hour")
	case depth > 0 && s.Always():
		return errors.New(key + ".kind: always cannot stand in a list")
	case depth > 0 && (s.On != "" || s.Cooldown != 0 || s.Timeout != 0):
		return errors.New(key + ": on, cooldown and timeout belong to the outermost condition")
	}
	return s.validateKind(key, depth)
}

// InWords is what must be so, as in "report.txt is there"; "" when it is always so. It is for those whom the heartbeat wakes:
// of a program and of an address, which may be the operator's, it tells no arguments.
func (s Spec) InWords() string {
	switch s.Kind {
	case "command":
		return s.commandInWords()
	case "http":
		host := "a server"
		if address, err := url.Parse(s.URL); err == nil {
			host = address.Host
		}
		if s.Status != 0 && s.Select == "" {
			return fmt.Sprintf("%s answers with status %d", host, s.Status)
		}
		return "the answer of " + host + " changes"
	case "file":
		return s.fileInWords()
	case "expr":
		return s.Expr
	case "idle":
		return "you have said nothing for " + Lasting(s.After)
	case "all", "any":
		parts := make([]string, len(s.Of))
		for i, of := range s.Of {
			parts[i] = of.InWords()
			if len(of.Of) > 0 {
				parts[i] = "(" + parts[i] + ")"
			}
			if parts[i] == "" {
				parts[i] = "always"
			}
		}
		return strings.Join(parts, map[string]string{"all": " and ", "any": " or "}[s.Kind])
	}
	return ""
}

func (s Spec) commandInWords() string {
	if s.Command == "" {
		return "a program says so"
	}
	var values []string
	for _, name := range slices.Sorted(maps.Keys(s.Parameters)) {
		values = append(values, fmt.Sprintf("%s %q", name, s.Parameters[name]))
	}
	if values == nil {
		return "the command `" + s.Command + "` ends with 0"
	}
	return "the command `" + s.Command + "` with " + strings.Join(values, ", ") + " ends with 0"
}

func (s Spec) fileInWords() string {
	switch s.Test {
	case "missing":
		return s.Path + " is not there"
	case "changed":
		return s.Path + " has changed"
	case "grows":
		return s.Path + " has grown"
	case "older_than":
		return s.Path + " is older than " + Lasting(s.Age)
	}
	return s.Path + " is there"
}

func (s Spec) validateKind(key string, depth int) error {
	switch s.Kind {
	case "command":
		return s.validateCommand(key)
	case "http":
		if !strings.HasPrefix(s.URL, "http://") && !strings.HasPrefix(s.URL, "https://") {
			return errors.New(key + ".url: must begin with http:// or https://")
		}
		if s.Status != 0 && (s.Status < 100 || s.Status > 599) {
			return errors.New(key + ".status: is no status, such as 200 or 503")
		}
	case "file":
		return s.validateFile(key)
	case "expr":
		if s.Expr == "" {
			return errors.New(key + ".expr: is empty")
		}
	case "idle":
		if s.After <= 0 {
			return errors.New(key + ".after: must be above zero")
		}
	case "all", "any":
		return s.validateOf(key, depth)
	}
	return nil
}

func (s Spec) validateCommand(key string) error {
	switch {
	case s.Command != "" && s.Run != nil:
		return errors.New(key + ".command: stands in place of run, so there cannot be both")
	case s.Command != "":
		return nil
	case len(s.Run) == 0 || s.Run[0] == "":
		return errors.New(key + ".run: is empty; it is the program and its arguments")
	case s.Parameters != nil:
		return errors.New(key + ".parameters: belongs to a command that the config prepared, not to run")
	}
	return nil
}

func (s Spec) validateFile(key string) error {
	switch {
	case s.Path == "" || strings.ContainsRune(s.Path, 0):
		return errors.New(key + ".path: is empty or holds a zero byte")
	case !slices.Contains(FileTests, s.Test):
		return fmt.Errorf("%s.test: %q is none of %s", key, s.Test, strings.Join(FileTests, ", "))
	case s.Test == "older_than" && s.Age <= 0:
		return errors.New(key + ".age: must be above zero for older_than")
	case s.Test != "older_than" && s.Age != 0:
		return fmt.Errorf("%s.age: belongs to the test older_than, not to %s", key, s.Test)
	}
	return nil
}

func (s Spec) validateOf(key string, depth int) error {
	switch {
	case len(s.Of) == 0 || len(s.Of) > maxOf:
		return fmt.Errorf("%s.of: needs 1 to %d conditions", key, maxOf)
	case depth >= maxNested:
		return fmt.Errorf("%s.of: is nested more than %d deep", key, maxNested)
	}
	for i, inner := range s.Of {
		if err := inner.validate(key+".of["+strconv.Itoa(i)+"]", depth+1); err != nil {
			return err
		}
	}
	return nil
}

// given lists the keys of single kinds that are set.
func (s Spec) given() []string {
	var keys []string
	for _, field := range []struct {
		key string
		set bool
	}{
		{"run", s.Run != nil}, {"command", s.Command != ""}, {"parameters", s.Parameters != nil}, {"url", s.URL != ""}, {"select", s.Select != ""}, {"status", s.Status != 0},
		{"path", s.Path != ""}, {"test", s.Test != ""}, {"age", s.Age != 0}, {"expr", s.Expr != ""},
		{"after", s.After != 0}, {"of", s.Of != nil},
	} {
		if field.set {
			keys = append(keys, field.key)
		}
	}
	return keys
}

// duration is a time.Duration that people and models can write.
type duration time.Duration

func (d duration) MarshalText() ([]byte, error) { return []byte(shortDuration(time.Duration(d))), nil }

func (d *duration) UnmarshalText(text []byte) error {
	if days, found := strings.CutSuffix(string(text), "d"); found {
		count, err := strconv.ParseInt(days, 10, 32)
		if err != nil || count < -36_500 || count > 36_500 {
			return fmt.Errorf("read duration %q: not a number of days", text)
		}
		*d = duration(time.Duration(count) * 24 * time.Hour)
		return nil
	}
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("read duration %q: write it like 90s, 24h or 7d", text)
	}
	*d = duration(parsed)
	return nil
}

// plainSpec has the fields of a Spec and not its methods.
type plainSpec Spec

// specJSON writes the durations as texts: its fields hide those of the same names.
type specJSON struct {
	*plainSpec
	Cooldown duration `json:"cooldown,omitempty"`
	Timeout  duration `json:"timeout,omitempty"`
	Age      duration `json:"age,omitempty"`
	After    duration `json:"after,omitempty"`
}

// MarshalJSON writes the durations as texts.
func (s Spec) MarshalJSON() ([]byte, error) {
	plain := plainSpec(s)
	return json.Marshal(specJSON{&plain, duration(s.Cooldown), duration(s.Timeout), duration(s.Age), duration(s.After)})
}

// UnmarshalJSON reads the durations as texts.
func (s *Spec) UnmarshalJSON(data []byte) error {
	var plain plainSpec
	read := specJSON{plainSpec: &plain}
	if err := json.Unmarshal(data, &read); err != nil {
		return fmt.Errorf("read condition: %w", err)
	}
	*s = Spec(plain)
	s.Cooldown, s.Timeout = time.Duration(read.Cooldown), time.Duration(read.Timeout)
	s.Age, s.After = time.Duration(read.Age), time.Duration(read.After)
	return nil
}

// same reports whether both describe one condition, so that what was remembered of one holds for the other.
func (s Spec) same(other Spec) bool { return reflect.DeepEqual(s, other) }
