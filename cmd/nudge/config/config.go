// Package config reads Nudge's configuration file, and says with file, line and key what is wrong with one.
//
// [Find] tells which file counts, [Load] reads it into a [Config], and [Default] is what runs without a file. A fault
// is an [Error]. Its text never quotes a value of the file, since the value may be a secret that was pasted in the
// wrong place. Secrets themselves stay out of the file: keys that end in _env name an environment variable or a file,
// which [Secret] reads.
//
// The struct tags are the rules of single keys: one lists the words a key may hold, above is the number a value must
// exceed. Rules between keys are in check.go, command.go, hook.go, tool.go, heartbeat.go and attention.go, where those
// who will use the values are asked too; what this version doesn't have yet is listed in unavailable.go.
package config

import (
	"time"

	"nudge/agent/hook"
)

// Config is everything the file can say. A Config from Load is complete: defaults are filled in, paths are absolute and
// every rule has been checked. It is not changed afterwards, so it may be read concurrently.
type Config struct {
	// File is the path the config came from; "" for the embedded defaults.
	File string `toml:"-"`

	DataDir    string      `toml:"data_dir"` // "" lets FindDataDir choose
	Model      Model       `toml:"model"`
	Limits     Limits      `toml:"limits"`
	Access     Access      `toml:"access"`
	Slack      Slack       `toml:"slack"`
	Discord    Discord     `toml:"discord"`
	Web        Web         `toml:"web"`
	Workspace  Workspace   `toml:"workspace"`
	Tools      Tools       `toml:"tools"`
	Fetch      Fetch       `toml:"fetch"`
	Commands   []Command   `toml:"command"`
	Hooks      []Hook      `toml:"hook"`
	Reviews    []Review    `toml:"review"`
	MCP        []MCP       `toml:"mcp"`
	Skills     Skills      `toml:"skills"`
	Diary      Diary       `toml:"diary"`
	Subagents  []Subagent  `toml:"subagent"`
	Heartbeats []Heartbeat `toml:"heartbeat"`
	Gauges     []Gauge     `toml:"gauge"`
	Attention  Attention   `toml:"attention"`
	Store      Store       `toml:"store"`
	Telemetry  Telemetry   `toml:"telemetry"`
}

// Model says who answers, and what it costs.
type Model struct {
	Provider      string   `toml:"provider" one:"openai|anthropic|demo"`
	BaseURL       string   `toml:"base_url"` // "" means the provider's own
	Name          string   `toml:"name"`
	APIKeyEnv     string   `toml:"api_key_env"`
	ContextWindow int      `toml:"context_window" above:"0"` // tokens
	MaxOutput     int      `toml:"max_output" above:"0"`     // tokens
	PriceIn       float64  `toml:"price_in"`                 // USD per million tokens
	PriceOut      float64  `toml:"price_out"`                // USD per million tokens
	CallTimeout   Duration `toml:"call_timeout" above:"0"`   // of one call
	IdleTimeout   Duration `toml:"idle_timeout" above:"0"`   // without a byte from the model
	Profile       string   `toml:"profile"`                  // quirks, separated by commas
	Fallbacks     []Model  `toml:"fallbacks"`

	// PricesKnown reports whether both prices were written, or nothing is charged. When false, a cost of zero means
	// unknown.
	PricesKnown bool `toml:"-"`
}

// Limits bound one turn, except UserDailyCostUSD, which bounds one person's day.
type Limits struct {
	MaxSteps         int      `toml:"max_steps" above:"0"`
	MaxToolCalls     int      `toml:"max_tool_calls" above:"0"`
	MaxTokens        int      `toml:"max_tokens"`             // 0 means none
	MaxCostUSD       float64  `toml:"max_cost_usd"`           // 0 means none
	UserDailyCostUSD float64  `toml:"user_daily_cost_usd"`    // 0 means none
	TurnTimeout      Duration `toml:"turn_timeout" above:"0"` // waiting for people not counted
	ToolTimeout      Duration `toml:"tool_timeout" above:"0"` // of one call
	MaxErrors        int      `toml:"max_errors" above:"0"`   // in a row
	ApprovalTimeout  Duration `toml:"approval_timeout" above:"0"`
	AskTimeout       Duration `toml:"ask_timeout" above:"0"`
}

// Access says who is let in. Entries are ids, never names; the last part of an allowed id may be "*".
type Access struct {
	Allow  []string `toml:"allow"` // empty means local people only
	Owners []string `toml:"owners"`
}

// Slack is on when both tokens are set.
type Slack struct {
	BotTokenEnv string `toml:"bot_token_env"`
	AppTokenEnv string `toml:"app_token_env"`
	APIURL      string `toml:"api_url"`
}

// Discord is on when its token is set.
type Discord struct {
	TokenEnv string `toml:"token_env"`
	APIURL   string `toml:"api_url"`
}

// Web is the console and the HTTP interface.
type Web struct {
	Listen      string `toml:"listen"` // host:port; "" turns both off
	APITokenEnv string `toml:"api_token_env"`
}

// Workspace is where the file tools work.
type Workspace struct {
	Dir   string `toml:"dir"` // "" lets WorkspaceDir choose
	Scope string `toml:"scope" one:"person|shared"`
}

// Tools says which tools are offered, and who must agree to them.
type Tools struct {
	Only    []string          `toml:"only"` // empty means all
	Deny    []string          `toml:"deny"`
	Approve map[string]string `toml:"approve" one:"no|ask|owner|second"` // by tool name
}

// Fetch says which hosts pages may be read from. Reading from those that are listed sends nothing out.
type Fetch struct {
	Hosts []string `toml:"hosts"` // empty means all public ones
}

// Command is a preset that run_command can run.
type Command struct {
	Name       string               `toml:"name"`
	Run        []string             `toml:"run"`
	Parameters map[string]Parameter `toml:"parameters"` // by name
	Effect     string               `toml:"effect" one:"read|idempotent|effect"`
	Approve    string               `toml:"approve" one:"no|ask|owner|second"`
	Timeout    Duration             `toml:"timeout" above:"0"` // 0 means limits.tool_timeout
	Box        bool                 `toml:"box"`
}

// Parameter is a value that a command takes. In the file it is a table, or just the pattern.
type Parameter struct {
	Pattern     string   `toml:"pattern"` // a regular expression for the whole value; "" lets the tool choose
	Choices     []string `toml:"choices"` // all values that there are, in a pattern's place
	Description string   `toml:"description"`
}

// Hook is a command that runs at a point of each step.
type Hook struct {
	At      string   `toml:"at" one:"before_step|before_model|before_tool|after_tool|after_step"`
	Run     []string `toml:"run"`
	Timeout Duration `toml:"timeout" above:"0"` // at most hook.MaxTimeout
}

// Review is a check of an answer before it is accepted.
type Review struct {
	Run    []string `toml:"run"`
	Tool   string   `toml:"tool"`
	Model  string   `toml:"model"`
	Rubric string   `toml:"rubric"`
	Rounds int      `toml:"rounds" above:"0"`
}

// MCP is a server that brings tools.
type MCP struct {
	Name     string   `toml:"name"`
	Command  []string `toml:"command"` // what to start, or
	URL      string   `toml:"url"`     // where it is
	Env      []string `toml:"env"`     // names of variables that the command is given besides PATH, HOME, LANG and TZ
	TokenEnv string   `toml:"token_env"`
	Tools    []string `toml:"tools"` // as the server names them
	ReadOnly []string `toml:"read_only"`
	Approve  string   `toml:"approve" one:"no|ask|owner|second"`
	Timeout  Duration `toml:"timeout" above:"0"` // of a call; 0 means limits.tool_timeout
}

// Skills are texts that tell the model how something is done.
type Skills struct {
	Dir  string `toml:"dir"`
	Mode string `toml:"mode" one:"on-demand|all|filesystem"`
}

// Diary says how notes are found again.
type Diary struct {
	Embedder  string  `toml:"embedder" one:"local|openai"`
	BaseURL   string  `toml:"base_url"` // "" means OpenAI's own
	Model     string  `toml:"model"`
	APIKeyEnv string  `toml:"api_key_env"`
	MinScore  float64 `toml:"min_score"` // 0 to 1; 0 means the default of memory/diary
}

// Subagent is a helper that the model can hand work to.
type Subagent struct {
	Name   string   `toml:"name"`
	Brief  string   `toml:"brief"`
	Tools  []string `toml:"tools"`
	Model  string   `toml:"model"`
	Limits Limits   `toml:"limits"`
}

// Heartbeat is a prompt that falls due again and again, and wakes the model only when its condition says so.
type Heartbeat struct {
	Name       string    `toml:"name"`
	Cron       string    `toml:"cron"`
	Timezone   string    `toml:"timezone"` // IANA name; "" means each person's own
	For        []string  `toml:"for"`      // person ids; none means who runs the program: the terminal's person, or web:me
	Prompt     string    `toml:"prompt"`
	Tools      []string  `toml:"tools"`
	MaxTicks   int       `toml:"max_ticks"` // ticks that woke; 0 means no end
	Until      Moment    `toml:"until"`
	RunTimeout Duration  `toml:"run_timeout" above:"0"` // 0 means limits.turn_timeout
	Missed     string    `toml:"missed" one:"once|skip"`
	Grace      Duration  `toml:"grace"` // how late a missed tick is still made up for
	BreakQuiet bool      `toml:"break_quiet"`
	Condition  Condition `toml:"condition"`
}

// Condition is the check in code that says whether to wake. Which of its keys count depends on Kind.
type Condition struct {
	Kind     string      `toml:"kind" one:"command|http|file|expr|idle|all|any|always"`
	On       string      `toml:"on" one:"change|true"`
	Cooldown Duration    `toml:"cooldown"`
	Timeout  Duration    `toml:"timeout" above:"0"` // 0 means the 10 s of schedule
	Run      []string    `toml:"run"`
	URL      string      `toml:"url"`
	Select   string      `toml:"select"`
	Status   int         `toml:"status"`
	Path     string      `toml:"path"`
	Test     string      `toml:"test" one:"exists|missing|changed|grows|older_than"`
	Age      Duration    `toml:"age" above:"0"`
	Expr     string      `toml:"expr"`
	After    Duration    `toml:"after" above:"0"`
	Of       []Condition `toml:"of"`
}

// Gauge is a number that expr conditions can read.
type Gauge struct {
	Name  string   `toml:"name"`
	Run   []string `toml:"run"`
	Every Duration `toml:"every" above:"0"` // how long a reading stays good
}

// Attention is each person's budget for unasked messages.
type Attention struct {
	Quiet    string `toml:"quiet"`     // such as "22:00-07:00", on each person's own clocks; "" means none
	DailyCap int    `toml:"daily_cap"` // messages on one date; 0 means any number
	Digest   string `toml:"digest"`    // "" means after the quiet hours, or 09:00 where there are none
}

// Store says where everything is kept.
type Store struct {
	Kind   string `toml:"kind" one:"bolt|postgres"`
	URLEnv string `toml:"url_env"`
}

// Telemetry says what others may measure.
type Telemetry struct {
	OTLPEndpoint string `toml:"otlp_endpoint"`
	Prometheus   bool   `toml:"prometheus"`
	Content      bool   `toml:"content"` // prompts, arguments and results go out too
}

// Default is the config of a Nudge that was given no file: the demo model, the web console on this machine only, and
// two presets that harm nothing.
func Default() Config {
	c := base()
	c.Commands = []Command{
		{
			Name:       "wait",
			Run:        []string{"sleep", "{seconds}"},
			Parameters: map[string]Parameter{"seconds": {Pattern: "[0-9]{1,2}", Description: "how many seconds to wait"}},
			Effect:     "read",
			Approve:    "no",
		},
		{Name: "disk", Run: []string{"df", "-h", "."}, Effect: "read", Approve: "no"},
	}
	return c
}

// base holds the default of every key, and so what a file starts from. It has no presets: a file lists its own.
func base() Config {
	return Config{
		Model: Model{
			Provider:      "demo",
			ContextWindow: 32768,
			// An eighth of the window, and enough for the longest answer that is still sent as messages.
			MaxOutput:   4096,
			CallTimeout: Duration(120 * time.Second),
			IdleTimeout: Duration(60 * time.Second),
			PricesKnown: true,
		},
		Limits: Limits{
			MaxSteps:        25,
			MaxToolCalls:    50,
			TurnTimeout:     Duration(15 * time.Minute),
			ToolTimeout:     Duration(60 * time.Second),
			MaxErrors:       3,
			ApprovalTimeout: Duration(72 * time.Hour),
			AskTimeout:      Duration(72 * time.Hour),
		},
		Web:       Web{Listen: "127.0.0.1:8484"},
		Workspace: Workspace{Scope: "person"},
		Diary:     Diary{Embedder: "local"},
		Store:     Store{Kind: "bolt"},
		Telemetry: Telemetry{Prometheus: true},
	}
}

// Elements of the file's lists start from these.

func newCommand() Command { return Command{Effect: "effect", Approve: "ask"} }

// newFallback is a model like the first, but for the provider, which must be written: nothing stands in unasked.
func newFallback() Model {
	fallback := base().Model
	fallback.Provider = ""
	return fallback
}

func newGauge() Gauge { return Gauge{Every: Duration(time.Minute)} }

func newMCP() MCP { return MCP{Approve: "ask"} }

func newHook() Hook { return Hook{Timeout: Duration(hook.DefaultTimeout)} }

func newCondition() Condition { return Condition{On: "change", Test: "exists"} }

// newPart is a condition inside another, to which "on" doesn't belong.
func newPart() Condition { return Condition{Test: "exists"} }

func newHeartbeat() Heartbeat {
	return Heartbeat{Missed: "once", Grace: Duration(time.Hour), Condition: newCondition()}
}
