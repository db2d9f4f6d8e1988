package config

import (
	"net"
	"net/url"
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
	checkTools(c, at.key("tools"), f)
	names = map[string]*place{}
	for i := range c.Heartbeats {
		checkHeartbeat(c.Heartbeats[i], at.key("heartbeat").item(i), names, f)
	}
}

func checkModel(c *Config, at *place, f *faults) {
	model := at.key("model")
	c.Model.PricesKnown = c.Model.Provider == "demo" || model.has("price_in") && model.has("price_out")
	if c.Model.Provider != "demo" && c.Model.Name == "" {
		f.add(model.key("name"), "model.name", "is needed: it says which model is to answer")
	}
	if !model.has("max_output") {
		// An eighth of a window that is smaller than usual; no more than the default of a larger one.
		c.Model.MaxOutput = min(c.Model.MaxOutput, max(c.Model.ContextWindow/8, 1))
	}
	if c.Model.MaxOutput >= c.Model.ContextWindow {
		f.add(model.key("max_output"), "model.max_output", "must be less than model.context_window")
	}
	checkAddress(c.Model.BaseURL, model, "model", "base_url", f)
	checkProfile(c.Model, model, f)
	limits := at.key("limits")
	checkMoney(c.Limits.MaxCostUSD, c.Model.PricesKnown, limits, "max_cost_usd", f)
	checkMoney(c.Limits.UserDailyCostUSD, c.Model.PricesKnown, limits, "user_daily_cost_usd", f)
}

// checkProfile refuses quirks that the provider's servers are not known to have.
func checkProfile(c Model, model *place, f *faults) {
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
	f.add(model.key("profile"), "model.profile", "%s", say)
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
