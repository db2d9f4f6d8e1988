package config

import (
	"maps"
	"net"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	// A container made of nothing but the binary has no zone files.
	_ "time/tzdata"
)

// check holds a config against the rules between its keys. Keys that were already found wrong hold their defaults.
func check(c *Config, at *place, f *faults) {
	checkModel(c, at, f)
	checkAccess(c, at.key("access"), f)
	checkAdapters(c, at, f)
	if c.Diary.MinScore > 1 {
		f.add(at.key("diary").key("min_score"), "diary.min_score", "must be 0 to 1")
	}
	checkAddress(c.Diary.BaseURL, at.key("diary"), "diary", "base_url", f)
	names := map[string]*place{}
	for i := range c.Commands {
		checkCommand(&c.Commands[i], at.key("command").item(i), names, f)
	}
	names = map[string]*place{}
	for i := range c.Heartbeats {
		checkHeartbeat(&c.Heartbeats[i], at.key("heartbeat").item(i), names, f)
	}
}

func checkModel(c *Config, at *place, f *faults) {
	model := at.key("model")
	c.Model.PricesKnown = c.Model.Provider == "demo" || model.has("price_in") && model.has("price_out")
	if c.Model.Provider != "demo" && c.Model.Name == "" {
		f.add(model.key("name"), "model.name", "is needed: it says which model is to answer")
	}
	if c.Model.MaxOutput >= c.Model.ContextWindow {
		f.add(model.key("max_output"), "model.max_output", "must be less than model.context_window")
	}
	checkAddress(c.Model.BaseURL, model, "model", "base_url", f)
	limits := at.key("limits")
	checkMoney(c.Limits.MaxCostUSD, c.Model.PricesKnown, limits, "max_cost_usd", f)
	checkMoney(c.Limits.UserDailyCostUSD, c.Model.PricesKnown, limits, "user_daily_cost_usd", f)
}

// checkMoney refuses a limit that nothing could be held to.
func checkMoney(limit float64, pricesKnown bool, at *place, key string, f *faults) {
	if limit > 0 && !pricesKnown {
		f.add(at.key(key), "limits."+key, "needs model.price_in and model.price_out: without prices nothing can be held to it")
	}
}

// checkAddress wants a web address without a password in it.
func checkAddress(address string, at *place, table, key string, f *faults) {
	if address == "" {
		return
	}
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		f.add(at.key(key), table+"."+key, "wants an address that begins with http:// or https://")
		return
	}
	if parsed.User != nil {
		f.add(at.key(key), table+"."+key, "must hold no user or password")
	}
}

// idParts tells how many parts, the platform included, an id of each platform has.
var idParts = map[string]int{"slack": 3, "discord": 2, "terminal": 2, "web": 2, "api": 2}

const idForms = `"slack:TEAM:USER", "discord:USER", "terminal:NAME", "web:me" or "api:USER"`

func checkAccess(c *Config, at *place, f *faults) {
	checkIDs(c.Access.Allow, at.key("allow"), "access.allow", true, f)
	checkIDs(c.Access.Owners, at.key("owners"), "access.owners", false, f)
}

// checkIDs refuses whatever isn't an id: names can be taken by anybody.
func checkIDs(ids []string, at *place, key string, star bool, f *faults) {
	for i, id := range ids {
		parts := strings.Split(id, ":")
		switch {
		case len(parts) == 1:
			f.add(at.item(i), key, "wants ids, not names, since anybody can take a name: write %s", idForms)
		case idParts[parts[0]] != len(parts) || slices.Contains(parts, "") || strings.ContainsAny(id, " \t\r\n"):
			f.add(at.item(i), key, "wants ids: write %s", idForms)
		case slices.Contains(parts[:len(parts)-1], "*") || !star && slices.Contains(parts, "*"):
			f.add(at.item(i), key, `takes "*" %s`, where(star))
		}
	}
}

func where(star bool) string {
	if star {
		return "only for the last part of an id"
	}
	return "in no id"
}

func checkAdapters(c *Config, at *place, f *faults) {
	slack := at.key("slack")
	checkAddress(c.Slack.APIURL, slack, "slack", "api_url", f)
	checkAddress(c.Discord.APIURL, at.key("discord"), "discord", "api_url", f)
	if c.Slack.BotTokenEnv != "" && c.Slack.AppTokenEnv == "" && !slack.has("app_token_env") {
		f.add(slack.key("bot_token_env"), "slack.bot_token_env", "needs slack.app_token_env beside it")
	}
	if c.Slack.AppTokenEnv != "" && c.Slack.BotTokenEnv == "" && !slack.has("bot_token_env") {
		f.add(slack.key("app_token_env"), "slack.app_token_env", "needs slack.bot_token_env beside it")
	}
	if c.Web.Listen == "" {
		return
	}
	_, port, err := net.SplitHostPort(c.Web.Listen)
	if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil {
		f.add(at.key("web").key("listen"), "web.listen", `wants a host and a port, such as "127.0.0.1:8484"`)
	}
}

// checkName wants a name that no earlier element of the list has.
func checkName(name string, at *place, key string, names map[string]*place, f *faults) {
	if strings.TrimSpace(name) == "" {
		f.add(at.key("name"), key, "is needed")
		return
	}
	if earlier, taken := names[name]; taken {
		f.add(at.key("name"), key, "is already taken on line %d", earlier.line)
		return
	}
	names[name] = at.key("name")
}

func checkCommand(c *Command, at *place, names map[string]*place, f *faults) {
	checkName(c.Name, at, "command.name", names, f)
	checkRun(c.Run, at, "command.run", f)
	for _, name := range slices.Sorted(maps.Keys(c.Parameters)) {
		if _, err := regexp.Compile(c.Parameters[name].Pattern); err != nil {
			f.add(at.key("parameters").key(name), "command.parameters."+shown(name), "has a pattern that is no regular expression")
		}
	}
}

// checkRun wants a program and its arguments.
func checkRun(run []string, at *place, key string, f *faults) {
	if len(run) == 0 || strings.TrimSpace(run[0]) == "" {
		f.add(at.key("run"), key, `is needed: the program and its arguments, such as ["df", "-h"]`)
	}
}

func checkHeartbeat(h *Heartbeat, at *place, names map[string]*place, f *faults) {
	checkName(h.Name, at, "heartbeat.name", names, f)
	if strings.TrimSpace(h.Cron) == "" {
		f.add(at.key("cron"), "heartbeat.cron", `is needed: when it falls due, such as "*/5 * * * *"`)
	}
	if strings.TrimSpace(h.Prompt) == "" {
		f.add(at.key("prompt"), "heartbeat.prompt", "is needed: what the model is told when it wakes")
	}
	checkIDs(h.For, at.key("for"), "heartbeat.for", false, f)
	if _, err := time.LoadLocation(h.Timezone); err != nil {
		f.add(at.key("timezone"), "heartbeat.timezone", `wants a zone's name, such as "Europe/Berlin"`)
	}
	if !at.has("condition") {
		f.add(at, "heartbeat.condition", `is needed: without one nothing would hold the model back; kind = "always" wakes at each tick`)
		return
	}
	checkCondition(&h.Condition, at.key("condition"), "heartbeat.condition", f)
}

// conditionKeys tells which keys a kind of condition reads, besides those that all kinds have.
var conditionKeys = map[string][]string{
	"command": {"run"},
	"http":    {"url", "select", "status"},
	"file":    {"path", "test", "age"},
	"expr":    {"expr"},
	"idle":    {"after"},
	"all":     {"of"},
	"any":     {"of"},
	"always":  {},
}

var commonConditionKeys = []string{"kind", "on", "cooldown", "timeout"}

func checkCondition(c *Condition, at *place, key string, f *faults) {
	if c.Kind == "" {
		if !at.has("kind") {
			f.add(at, key+".kind", `is needed: "command", "file", "all", "any" or "always"`)
		}
		return
	}
	allowed := slices.Concat(commonConditionKeys, conditionKeys[c.Kind])
	for _, rule := range fields(reflect.TypeFor[Condition]()) {
		if at.has(rule.name) && !slices.Contains(allowed, rule.name) {
			f.add(at.key(rule.name), key+"."+rule.name, "isn't read by a condition of kind %q", c.Kind)
		}
	}
	switch c.Kind {
	case "command":
		checkRun(c.Run, at, key+".run", f)
	case "file":
		checkFile(c, at, key, f)
	case "all", "any":
		if len(c.Of) == 0 {
			f.add(at.key("of"), key+".of", "is needed: the list of conditions")
		}
		for i := range c.Of {
			checkCondition(&c.Of[i], at.key("of").item(i), key+".of", f)
		}
	}
}

func checkFile(c *Condition, at *place, key string, f *faults) {
	if c.Path == "" {
		f.add(at.key("path"), key+".path", "is needed: the file to look at")
	}
	old := c.Test == "older_than"
	if old && c.Age == 0 && !at.has("age") {
		f.add(at.key("test"), key+".test", "needs %s.age beside it", key)
	}
	if !old && at.has("age") {
		f.add(at.key("age"), key+".age", `is read only with test = "older_than"`)
	}
}
