package demo

import (
	"encoding/json"
	"slices"
	"strings"
)

const tellMe = `(?:please )?(?:tell|notify|ping|warn|message|alert|remind|let)(?: me| us)?(?: know)? (?:when(?:ever)?|if|once|as soon as)(?: the| an?| my| our)? `

var (
	// The words are those of a check that says yes: what is said of a failure it cannot tell from its own.
	checkWords = phrase(tellMe + `(?:(?:command|preset|check) )?(?P<name>` + "`[^`]+`|\"[^\"]+\"|" + `[\p{L}\p{N}_.-]+)(?: (?:command|preset|check))? (?:succeeds|passes|works|says yes|is true|ends with 0|exits with 0|(?:is|are|goes|turns|becomes|gets) (?:red|broken|failing|down))(?P<rest>(?: (?:again|now))?)`)
	pageWords  = phrase(tellMe + "(?:page |site |website |address )?[<`\"]?(?P<url>https?://[^\\s<>\"`]+)[>\"`]? (?:changes|is changed|is updated|gets updated|answers(?: with)?(?: status)? (?P<status>[1-5]\\d\\d))(?: (?:at|in) `?(?P<select>[\\w.$*\\[\\]-]+)`?)?")
)

// conditionOf is the schema of what a heartbeat can be made to wait for.
func (r *reading) conditionOf() schema {
	var condition schema
	if raw := schemaOf(r.tools["create_heartbeat"]).Properties["condition"]; len(raw) > 0 && json.Unmarshal(raw, &condition) != nil {
		return schema{}
	}
	return condition
}

// checkIntent makes a heartbeat that wakes when a prepared command says so.
func checkIntent(r *reading, c clause) act {
	words, w := c.plain, when{cron: "@every 1m"}
	if found, ok := r.findTime(c.plain); ok {
		words, w = found.rest, found
	}
	m := groups(checkWords, words)
	if m == nil {
		return nil
	}
	name := strings.ToLower(unquote(m["name"]))
	commands := r.conditionOf().property("command").names()
	i := slices.IndexFunc(commands, func(command string) bool {
		command = strings.ToLower(command)
		return command == name || strings.TrimSuffix(command, "s") == strings.TrimSuffix(name, "s")
	})
	if i < 0 {
		return nil
	}
	return watching(slug(commands[i]), words, w, map[string]any{"kind": "command", "command": commands[i]})
}

// addressIntent makes a heartbeat that wakes when a page changes or has a status.
func addressIntent(r *reading, c clause) act {
	words, w := c.plain, when{cron: "@every 10m"}
	if found, ok := r.findTime(c.plain); ok {
		words, w = found.rest, found
	}
	m := groups(pageWords, words)
	if m == nil || !slices.Contains(r.conditionOf().property("kind").names(), "http") {
		return nil
	}
	condition := map[string]any{"kind": "http", "url": m["url"]}
	if m["status"] != "" {
		condition["status"] = number(m["status"])
	}
	if m["select"] != "" {
		condition["select"] = m["select"]
	}
	_, host, _ := strings.Cut(m["url"], "://")
	return watching(slug(host), words, w, condition)
}

// watching is an act that makes a heartbeat with a condition. One with a time of its own tells what is so then.
func watching(name, prompt string, w when, condition map[string]any) act {
	condition["on"] = "change"
	if !strings.HasPrefix(w.cron, "@every") {
		condition["on"] = "true"
	}
	arguments := map[string]any{"name": name, "cron": w.cron, "prompt": capital(prompt), "condition": condition}
	w.put(arguments)
	return func(t *turn) { t.perform("create_heartbeat", arguments) }
}
