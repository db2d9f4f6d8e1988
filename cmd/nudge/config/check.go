package config

import (
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"nudge/agent/model/anthropic"
	"nudge/agent/model/openai"
)

// check holds a config against the rules between its keys. Keys that were already found wrong hold their defaults.
func check(c *Config, at *place, f *faults) {
	checkModel(c, at, f)
	checkAccess(c, at.key("access"), f)
	checkAdapters(c, at, f)
	names := map[string]*place{}
	for i := range c.Commands {
		checkCommand(c.Commands[i], at.key("command").item(i), names, f)
	}
	for i := range c.Hooks {
		checkHook(c.Hooks[i], at.key("hook").item(i), f)
	}
	servers := map[string]*place{}
	for i := range c.MCP {
		checkMCP(c.MCP[i], at.key("mcp").item(i), servers, f)
	}
	checkTools(c, at.key("tools"), f)
	checkDiary(c, at.key("diary"), f)
	checkFetch(c, at.key("fetch"), f)
	gauges := checkGauges(c, at.key("gauge"), f)
	names = map[string]*place{}
	for i := range c.Heartbeats {
		checkHeartbeat(c, c.Heartbeats[i], gauges, at.key("heartbeat").item(i), names, f)
	}
	checkAttention(c.Attention, at.key("attention"), f)
}

func checkModel(c *Config, at *place, f *faults) {
	model := at.key("model")
	checkOneModel(&c.Model, model, "model", f)
	known := c.Model.PricesKnown
	for i := range c.Model.Fallbacks {
		fallback, at := &c.Model.Fallbacks[i], model.key("fallbacks").item(i)
		if fallback.Provider == "" {
			f.add(at, "model.fallbacks.provider", "is needed: which of the providers stands in")
		}
		if len(fallback.Fallbacks) > 0 {
			f.add(at.key("fallbacks"), "model.fallbacks.fallbacks", "stands inside another; list them one after the other")
		}
		checkOneModel(fallback, at, "model.fallbacks", f)
		known = known && fallback.PricesKnown
	}
	limits := at.key("limits")
	checkMoney(c.Limits.MaxCostUSD, known, limits, "max_cost_usd", f)
	checkMoney(c.Limits.UserDailyCostUSD, known, limits, "user_daily_cost_usd", f)
}

// checkOneModel checks what stands in the table of one model.
func checkOneModel(m *Model, at *place, table string, f *faults) {
	m.PricesKnown = m.Provider == "demo" || at.has("price_in") && at.has("price_out")
	if m.Provider != "demo" && m.Name == "" {
		f.add(at.key("name"), table+".name", "is needed: it says which model is to answer")
	}
	if !at.has("max_output") {
		// An eighth of a window that is smaller than usual; no more than the default of a larger one.
		m.MaxOutput = min(m.MaxOutput, max(m.ContextWindow/8, 1))
	}
	if m.MaxOutput >= m.ContextWindow {
		f.add(at.key("max_output"), table+".max_output", "must be less than %s.context_window", table)
	}
	checkAddress(m.BaseURL, at, table, "base_url", f)
	checkProfile(*m, at, table, f)
}

// checkProfile refuses quirks that the provider's servers are not known to have.
func checkProfile(c Model, model *place, table string, f *faults) {
	_, err := openai.ParseProfile(c.Profile)
	if c.Provider == "anthropic" {
		_, err = anthropic.ParseProfile(c.Profile)
	}
	if err == nil {
		return
	}
	say := "names a quirk that is not known"
	if i := strings.LastIndex(err.Error(), "; known are "); i >= 0 {
		say += err.Error()[i:]
	}
	f.add(model.key("profile"), table+".profile", "%s", say)
}

// checkMoney refuses a limit that nothing could be held to.
func checkMoney(limit float64, pricesKnown bool, at *place, key string, f *faults) {
	if limit > 0 && !pricesKnown {
		f.add(at.key(key), "limits."+key, "needs model.price_in and model.price_out, and those of every fallback: without prices nothing can be held to it")
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

// What Slack names a workspace, or an organisation of several, and a person of one or the other. A display name or ids that
// have changed places would fit nobody, and nobody would be told.
var (
	slackTeam = regexp.MustCompile(`^[TE][A-Z0-9]+$`)
	slackUser = regexp.MustCompile(`^[UW][A-Z0-9]+$`)
)

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
		case parts[0] == "slack" && !slackTeam.MatchString(parts[1]):
			f.add(at.item(i), key, "wants Slack's own id of the workspace, such as T0123456, between the colons")
		case parts[0] == "slack" && parts[2] != "*" && !slackUser.MatchString(parts[2]):
			f.add(at.item(i), key, "wants Slack's own id of the person, such as U0123456, at the end: it stands in their profile under \"Copy member ID\"")
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

// checkRun wants a program and its arguments.
func checkRun(run []string, at *place, key string, f *faults) {
	if len(run) == 0 || strings.TrimSpace(run[0]) == "" {
		f.add(at.key("run"), key, `is needed: the program and its arguments, such as ["df", "-h"]`)
	}
}
