package config

import (
	"context"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	// A container made of nothing but the binary has no zone files.
	_ "time/tzdata"

	"nudge/schedule"
	"nudge/schedule/condition"
)

// checkHeartbeat holds a heartbeat against the rules of this file, and then against those of the schedule itself, so
// that none gets past that the clock would refuse.
func checkHeartbeat(c *Config, h Heartbeat, gauges *condition.Gauges, at *place, names map[string]*place, f *faults) {
	checkName(h.Name, at, "heartbeat.name", names, f)
	checkTimes(h, at, f)
	if strings.TrimSpace(h.Prompt) == "" {
		f.add(at.key("prompt"), "heartbeat.prompt", "is needed: what the model is told when it wakes")
	}
	checkIDs(h.For, at.key("for"), "heartbeat.for", false, f)
	for i, tool := range h.Tools {
		if say := wakeTools.fault(tool); say != "" && !c.bringsTool(tool) {
			f.add(at.key("tools").item(i), "heartbeat.tools", "%s", say)
		}
	}
	if at.has("condition") {
		checkCondition(&h.Condition, at.key("condition"), "heartbeat.condition", f)
	} else {
		f.add(at, "heartbeat.condition", `is needed: without one nothing would hold the model back; kind = "always" wakes at each tick`)
	}
	if f.in("heartbeat") {
		return // what was found wrong holds its default now
	}
	beat, err := h.Scheduled("web:me")
	if err == nil {
		err = beat.Validate()
	}
	if err == nil {
		_, err = condition.New(beat.Condition, condition.Env{Zone: beat.Zone, Gauges: gauges, Silent: always})
	}
	if err != nil {
		f.refused(at, "heartbeat", err)
	}
}

// always is for how long people are silent who are not asked.
func always(context.Context, string) (time.Time, error) { return time.Time{}, nil }

// checkGauges holds the gauges against the rules of this file, and then against those of the conditions that read them. It
// gives those that could be read.
func checkGauges(c *Config, at *place, f *faults) *condition.Gauges {
	names := map[string]*place{}
	var sound []condition.Gauge
	for i, g := range c.Gauges {
		here, before := at.item(i), len(f.list)
		checkName(g.Name, here, "gauge.name", names, f)
		checkRun(g.Run, here, "gauge.run", f)
		if len(f.list) > before {
			continue
		}
		if _, err := condition.NewGauges([]condition.Gauge{g.read()}, ""); err != nil {
			f.refused(here, "gauge", err)
			continue
		}
		sound = append(sound, g.read())
	}
	gauges, err := condition.NewGauges(sound, "")
	if err != nil { // each alone was right
		f.refused(at, "gauge", err)
	}
	return gauges
}

func (g Gauge) read() condition.Gauge {
	return condition.Gauge{Name: g.Name, Run: g.Run, Every: g.Every.Std()}
}

// Measured are the gauges as conditions read them.
func (c Config) Measured() []condition.Gauge {
	var list []condition.Gauge
	for _, g := range c.Gauges {
		list = append(list, g.read())
	}
	return list
}

// checkTimes wants a zone that is known and times that come.
func checkTimes(h Heartbeat, at *place, f *faults) {
	zone := h.Timezone
	if _, err := schedule.ParseCron("@daily", zone); err != nil {
		f.add(at.key("timezone"), "heartbeat.timezone", `wants a zone's name, such as "Europe/Berlin"`)
		zone = ""
	}
	if strings.TrimSpace(h.Cron) == "" {
		f.add(at.key("cron"), "heartbeat.cron", `is needed: when it falls due, such as "*/5 * * * *"`)
	} else if _, err := schedule.ParseCron(h.Cron, zone); err != nil {
		f.add(at.key("cron"), "heartbeat.cron", "%s", cronFault(h.Cron))
	}
}

// cronFields are what the fields of a cron spec stand for, in order.
var cronFields = []string{"minute", "hour", "day of month", "month", "day of week"}

// cronFault says what is wrong with a cron spec that the schedule refuses, without a word of it.
func cronFault(spec string) string {
	spec = strings.TrimSpace(spec)
	fields := strings.Fields(spec)
	switch {
	case strings.HasPrefix(spec, "@every"):
		return `wants a length of time after @every, one second to ten years, such as "@every 10m" or "@every 1h30m"`
	case strings.HasPrefix(spec, "@"):
		return `knows "@hourly", "@daily", "@weekly", "@monthly", "@yearly" and "@every 10m"`
	case strings.Contains(spec, "TZ="):
		return "holds a time zone, which belongs into heartbeat.timezone"
	case len(fields) != len(cronFields):
		return fmt.Sprintf("has %d fields and needs five: %s", len(fields), strings.Join(cronFields, ", "))
	}
	for i, field := range fields {
		alone := slices.Repeat([]string{"*"}, len(cronFields))
		alone[i] = field
		if _, err := schedule.ParseCron(strings.Join(alone, " "), ""); err != nil {
			return fmt.Sprintf("has a field that cannot be read, for the %s; the five are %s", cronFields[i], strings.Join(cronFields, ", "))
		}
	}
	return "fits no date, so it would never fall due"
}

// quoted matches what an error quotes, and the blank after it.
var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*" ?`)

// refused notes an error of the form "heartbeat.condition.of[1].path: what is wrong", without the values it quotes.
func (f *faults) refused(at *place, table string, err error) {
	path, say, _ := strings.Cut(err.Error(), ": ")
	key := table
	for part := range strings.SplitSeq(strings.TrimPrefix(path, table+"."), ".") {
		name, position, inList := strings.Cut(part, "[")
		at, key = at.key(name), dotted(key, name)
		if i, err := strconv.Atoi(strings.TrimSuffix(position, "]")); inList && err == nil {
			at = at.item(i)
		}
	}
	f.say(at, key, key+": "+quoted.ReplaceAllString(say, ""))
}

// Scheduled is the heartbeat as the schedule takes it, for the given person when it names nobody. A day as its end is
// over at midnight in the heartbeat's zone, or in this machine's if it names none. A zone or an end that cannot be read
// is an error; a Config from Load has none.
func (h Heartbeat) Scheduled(person string) (schedule.Heartbeat, error) {
	beat := schedule.Heartbeat{
		Name: h.Name, Cron: h.Cron, Zone: h.Timezone, For: h.For, Prompt: h.Prompt, Tools: h.Tools, MaxTicks: h.MaxTicks,
		RunTimeout: h.RunTimeout.Std(), Missed: h.Missed, Grace: h.Grace.Std(), BreakQuiet: h.BreakQuiet,
		Condition: h.Condition.spec(),
	}
	if len(beat.For) == 0 {
		beat.For = []string{person}
	}
	if h.Until == "" {
		return beat, nil
	}
	zone := time.Local
	if h.Timezone != "" {
		named, err := time.LoadLocation(h.Timezone)
		if err != nil {
			return beat, fmt.Errorf("heartbeat.timezone: %w", err)
		}
		zone = named
	}
	until, err := h.Until.In(zone)
	if err != nil {
		return beat, fmt.Errorf("heartbeat.until: %w", err)
	}
	beat.Until = until.UTC()
	return beat, nil
}

// spec is a condition as the schedule knows it: only with the keys of its kind.
func (c Condition) spec() schedule.Spec {
	s := schedule.Spec{
		Kind: c.Kind, On: c.On, Cooldown: c.Cooldown.Std(), Timeout: c.Timeout.Std(),
		Run: c.Run, URL: c.URL, Select: c.Select, Status: c.Status, Path: c.Path, Age: c.Age.Std(),
		Expr: c.Expr, After: c.After.Std(),
	}
	if c.Kind == "file" {
		s.Test = c.Test
	}
	for _, part := range c.Of {
		s.Of = append(s.Of, part.spec())
	}
	return s
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

// conditionKinds are the kinds that this version has.
func conditionKinds() []string {
	for _, rule := range fields(reflect.TypeFor[Condition]()) {
		if rule.name == "kind" {
			return available("heartbeat.condition.kind", rule.one)
		}
	}
	return nil
}

func checkCondition(c *Condition, at *place, key string, f *faults) {
	if c.Kind == "" {
		if !at.has("kind") {
			f.add(at, key+".kind", "is needed: %s", choice(conditionKinds()))
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
	case "http":
		if c.URL == "" {
			f.add(at.key("url"), key+".url", "is needed: the address to look at")
		}
	case "expr":
		if c.Expr == "" {
			f.add(at.key("expr"), key+".expr", `is needed: what must be true, such as "weekday == 'Monday' and load > 4"`)
		}
	case "idle":
		if c.After == 0 && !at.has("after") {
			f.add(at.key("after"), key+".after", `is needed: for how long nobody spoke, such as "24h"`)
		}
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
