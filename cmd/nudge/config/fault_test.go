package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// otherModel is the least that a model other than demo needs, on two lines and without an end of line.
const otherModel = "model.provider = \"openai\"\nmodel.name = \"small\""

const daily = `[[heartbeat]]
name = "daily"
cron = "0 9 * * *"
for = ["web:me"]
prompt = "look"
`

// guard is a hook, with its lines 1 to 3.
const guard = `[[hook]]
at = "before_tool"
run = ["guard"]
`

const points = `hook.at must be "before_step", "before_model", "before_tool", "after_tool" or "after_step"`

const ids = `"slack:TEAM:USER", "discord:USER", "terminal:NAME", "web:me" or "api:USER"`

// faulty lists wrong configs, each with the line, the key and the sentence of its first fault.
var faulty = []struct {
	name, document string
	line           int
	key, say       string
	more           int
}{
	{"slip in a table", "[limits]\n\n[modle]\nname = \"x\"\n", 3, "modle", `unknown key "modle"; did you mean "model"?`, 0},
	{"slip in a dotted table", "[limits]\nmax_steps = 1\n[modle.more]\nname = \"x\"", 3, "modle.more", `unknown key "modle.more"`, 0},
	{"slip in a dotted key", "\n# x\nmodle.name = \"x\"", 3, "modle.name", `unknown key "modle.name"; did you mean "model.name"?`, 0},
	{"slip in an inline table", "modle = { name = \"x\" }", 1, "modle.name", `unknown key "modle.name"; did you mean "model.name"?`, 0},
	{"slip in a key", "[model]\n\nproivder = \"demo\"", 3, "model.proivder", `unknown key "model.proivder"; did you mean "model.provider"?`, 0},
	{"capital", "[Model]\nname = \"x\"", 1, "Model", `unknown key "Model"; did you mean "model"?`, 0},
	{"wrong table", "[limits]\nbase_url = \"x\"", 2, "limits.base_url", `unknown key "limits.base_url"; did you mean "model.base_url"?`, 0},
	{"no table", "max_steps = 3", 1, "max_steps", `unknown key "max_steps"; did you mean "limits.max_steps"?`, 0},
	{"shortened", "[slack]\nbot_token = \"x\"", 2, "slack.bot_token", `unknown key "slack.bot_token"; did you mean "slack.bot_token_env"?`, 0},
	{"nothing near", "[model]\nqqqqqqq = 1", 2, "model.qqqqqqq", `unknown key "model.qqqqqqq"`, 0},
	{"secret as a key", "[slack]\n\"xoxb-123456789-a\" = 1", 2, "slack.?", `unknown key "slack.?"`, 0},
	{"second command", "[[command]]\nname = \"a\"\nrun = [\"a\"]\n\n[[command]]\nname = \"b\"\nruns = [\"b\"]\nrun = [\"b\"]", 7, "command.runs", `unknown key "command.runs"; did you mean "command.run"?`, 0},
	{"heartbeat", daily + "tmezone = \"UTC\"\ncondition.kind = \"always\"", 6, "heartbeat.tmezone", `unknown key "heartbeat.tmezone"; did you mean "heartbeat.timezone"?`, 0},
	{"condition", daily + "[heartbeat.condition]\nkind = \"always\"\ncooldwn = \"1h\"", 8, "heartbeat.condition.cooldwn", `unknown key "heartbeat.condition.cooldwn"; did you mean "heartbeat.condition.cooldown"?`, 0},
	{"second heartbeat's condition", daily + "[heartbeat.condition]\nkind = \"always\"\n" + strings.Replace(daily, "daily", "weekly", 1) + "[heartbeat.condition]\nkind = \"always\"\ncooldown = 1", 15, "heartbeat.condition.cooldown", `heartbeat.condition.cooldown wants a length of time such as "90s", "15m", "72h" or "7d"`, 0},
	{"inner condition", daily + "[heartbeat.condition]\nkind = \"any\"\nof = [\n { kind = \"always\" },\n { knd = \"always\", kind = \"always\" },\n]", 10, "heartbeat.condition.of.knd", `unknown key "heartbeat.condition.of.knd"; did you mean "heartbeat.condition.of.kind"?`, 0},
	{"parameter", "[[command]]\nname = \"a\"\nrun = [\"a\"]\n[command.parameters.x]\npatern = \"y\"", 5, "command.parameters.x.patern", `unknown key "command.parameters.x.patern"; did you mean "command.parameters.x.pattern"?`, 0},
	{"two unknown", "[model]\nx_y_z = 1\n[slack]\nx_y_z = 2\nz_y_x = 2", 2, "model.x_y_z", `unknown key "model.x_y_z"`, 2},

	{"whole number", "[limits]\nmax_steps = \"25\"", 2, "limits.max_steps", "limits.max_steps wants a whole number", 0},
	{"fraction", "[limits]\nmax_steps = 2.5", 2, "limits.max_steps", "limits.max_steps wants a whole number", 0},
	{"too large", "[limits]\nmax_steps = 3000000000", 2, "limits.max_steps", "limits.max_steps is too large", 0},
	{"number", "[limits]\nmax_cost_usd = true", 2, "limits.max_cost_usd", "limits.max_cost_usd wants a number", 0},
	{"no number", "[limits]\nmax_cost_usd = nan", 2, "limits.max_cost_usd", "limits.max_cost_usd wants a number", 0},
	{"endless", "[model]\nprice_in = inf", 2, "model.price_in", "model.price_in wants a number", 0},
	{"text", "data_dir = 1", 1, "data_dir", "data_dir wants a text in quotes", 0},
	{"flag", "[telemetry]\ncontent = \"no\"", 2, "telemetry.content", "telemetry.content wants true or false", 0},
	{"list", "[access]\nallow = \"web:me\"", 2, "access.allow", `access.allow wants a list of texts, such as ["one", "two"]`, 0},
	{"list element", "[access]\nallow = [\n \"web:me\",\n 1,\n]", 4, "access.allow", "access.allow wants nothing but texts in its list", 0},
	{"table", "\nlimits = 3", 2, "limits", "limits wants a table", 0},
	{"map", "tools.approve = \"ask\"", 1, "tools.approve", "tools.approve wants a table", 0},
	{"tables", "[command]\nname = \"a\"", 1, "command", "command wants a list of tables, each begun with [[command]]", 0},
	{"parameters", "[[command]]\nname = \"a\"\nrun = [\"a\"]\nparameters = { x = 1 }", 4, "command.parameters.x", "command.parameters.x wants a table", 0},
	{"length of time", "[limits]\nturn_timeout = 900", 2, "limits.turn_timeout", `limits.turn_timeout wants a length of time such as "90s", "15m", "72h" or "7d"`, 0},
	{"negative time", "[limits]\nturn_timeout = \"-1s\"", 2, "limits.turn_timeout", `limits.turn_timeout wants a length of time such as "90s", "15m", "72h" or "7d"`, 0},
	{"no time", "[limits]\nturn_timeout = \"0s\"", 2, "limits.turn_timeout", "limits.turn_timeout must be more than 0", 0},

	{"syntax", "[model]\nprovider = \"demo\nname = \"x\"", 2, "", "not valid TOML: basic strings cannot have new lines", 0},
	{"no quotes", "[model]\nprovider = demo", 2, "", "not valid TOML: unexpected character", 0},
	{"no value", "[model]\n\nxoxb-1", 3, "", "not valid TOML: expected '=' after key", 0},
	{"key twice", "[model]\nname = \"a\"\nname = \"b\"", 3, "", "a key or table stands here that the file already has", 0},
	{"table twice", "[model]\n[limits]\n[model]", 3, "", "a key or table stands here that the file already has", 0},

	{"provider", "[model]\nprovider = \"gemini\"", 2, "model.provider", `model.provider must be "openai", "anthropic" or "demo"`, 0},
	{"model without a name", "[model]\nprovider = \"openai\"", 1, "model.name", "model.name is needed: it says which model is to answer", 0},
	{"money without prices", otherModel + "\n[limits]\nmax_cost_usd = 1", 4, "limits.max_cost_usd", "limits.max_cost_usd needs model.price_in and model.price_out, and those of every fallback: without prices nothing can be held to it", 0},
	{"money with half the prices", otherModel + "\nmodel.price_in = 1\n[limits]\nuser_daily_cost_usd = 1", 5, "limits.user_daily_cost_usd", "limits.user_daily_cost_usd needs model.price_in and model.price_out, and those of every fallback: without prices nothing can be held to it", 0},
	{"negative money", "[limits]\nmax_cost_usd = -0.01", 2, "limits.max_cost_usd", "limits.max_cost_usd must not be negative", 0},
	{"negative limit", "[limits]\nmax_tokens = -1", 2, "limits.max_tokens", "limits.max_tokens must not be negative", 0},
	{"no steps", "[limits]\nmax_steps = 0", 2, "limits.max_steps", "limits.max_steps must be more than 0", 0},
	{"output over the window", "[model]\ncontext_window = 4096\nmax_output = 4096", 3, "model.max_output", "model.max_output must be less than model.context_window", 0},
	{"address", "[slack]\napi_url = \"slack.com\"", 2, "slack.api_url", "slack.api_url wants an address that begins with http:// or https://", 0},
	{"password in an address", "[model]\nbase_url = \"https://me:s3cret@host/v1\"", 2, "model.base_url", "model.base_url must hold no user or password", 0},
	{"half of Slack", "[slack]\nbot_token_env = \"BOT\"", 2, "slack.bot_token_env", "slack.bot_token_env needs slack.app_token_env beside it", 0},
	{"other half of Slack", "[slack]\napp_token_env = \"APP\"", 2, "slack.app_token_env", "slack.app_token_env needs slack.bot_token_env beside it", 0},
	{"token in place of its name", "[discord]\ntoken_env = \"MTk4.Nzg2.s3cret\"", 2, "discord.token_env", "discord.token_env wants the name of an environment variable, or a file that begins with / or ./; the secret itself doesn't belong here", 0},
	{"listen", "[web]\nlisten = \"8484\"", 2, "web.listen", `web.listen wants a host and a port, such as "127.0.0.1:8484"`, 0},
	{"port", "[web]\nlisten = \"127.0.0.1:http\"", 2, "web.listen", `web.listen wants a host and a port, such as "127.0.0.1:8484"`, 0},
	{"quirk of another provider", "[model]\nprovider = \"anthropic\"\nname = \"x\"\nprofile = \"no_cache, text_tool_calls\"", 4, "model.profile", "model.profile names a quirk that is not known; known are no_stream, no_cache, bearer", 0},
	{"quirk", otherModel + "\nmodel.profile = \"no_stream, magic; known are s3cret\"", 3, "model.profile", "model.profile names a quirk that is not known; known are max_completion_tokens, text_tool_calls, echo_reasoning, no_stream, strict_roles", 0},

	{"name in place of an id", "[access]\nallow = [\n \"slack:T1:U1\",\n \"alice\",\n]", 4, "access.allow", "access.allow wants ids, not names, since anybody can take a name: write " + ids, 0},
	{"three names", "[access]\nallow = [\"alice\", \"U0ALICE\", \"discord:111\"]", 2, "access.allow", "access.allow wants ids, not names, since anybody can take a name: write " + ids, 0},
	{"Slack's display name", "[access]\nallow = [\"slack:T1:@ann\"]", 2, "access.allow", "access.allow wants Slack's own id of the person, such as U0123456, at the end: it stands in their profile under \"Copy member ID\"", 0},
	{"Slack's ids in small letters", "[access]\nowners = [\"slack:T1:u1\"]", 2, "access.owners", "access.owners wants Slack's own id of the person, such as U0123456, at the end: it stands in their profile under \"Copy member ID\"", 0},
	{"Slack's ids the other way round", "[access]\nallow = [\n \"slack:E1:*\",\n \"slack:U1:T1\",\n]", 4, "access.allow", "access.allow wants Slack's own id of the workspace, such as T0123456, between the colons", 0},
	{"Slack workspace by name", "[access]\nallow = [\"slack:acme:*\"]", 2, "access.allow", "access.allow wants Slack's own id of the workspace, such as T0123456, between the colons", 0},
	{"owner without a team", "[access]\nowners = [\"slack:U1\"]", 2, "access.owners", "access.owners wants ids: write " + ids, 0},
	{"unknown platform", "[access]\nowners = [\"irc:ann\"]", 2, "access.owners", "access.owners wants ids: write " + ids, 0},
	{"every platform", "[access]\nallow = [\"*:me\"]", 2, "access.allow", "access.allow wants ids: write " + ids, 0},
	{"every team", "[access]\nallow = [\"slack:*:U1\"]", 2, "access.allow", `access.allow takes "*" only for the last part of an id`, 0},
	{"all are owners", "[access]\nowners = [\"api:*\"]", 2, "access.owners", `access.owners takes "*" in no id`, 0},
	{"policy", "[tools]\napprove = { write_file = \"ask\", delete_file = \"never\" }", 2, "tools.approve.delete_file", `tools.approve.delete_file must be "no", "ask", "owner" or "second"`, 0},
	{"no such tool", "[tools]\napprove = { delet_file = \"owner\" }", 2, "tools.approve.delet_file", `tools.approve.delet_file names no tool; did you mean "delete_file"?`, 0},
	{"denying no such tool", "[tools]\ndeny = [\n \"write_file\",\n \"Write_File\",\n]", 4, "tools.deny", `tools.deny names no tool; did you mean "write_file"?`, 0},
	{"only no such tool", "[tools]\nonly = [\"s3cret\"]", 2, "tools.only", "tools.only names no tool; there are ask_person, create_heartbeat, delete_file, fetch_page, forget_note, list_files, notify, plan, read_file, recall, remember, run_command, run_script, stop_heartbeat, write_file", 0},
	{"only a later tool", "[tools]\nonly = [\"load_skill\"]", 2, "tools.only", "tools.only names a tool that is not available in this version", 0},
	{"denying a part of a tool", "[tools]\ndeny = [\"overwrite_file\"]", 2, "tools.deny", "tools.deny names no tool of its own: name write_file, or give it a policy as tools.approve.overwrite_file", 0},
	{"policy of a command", "[[command]]\nname = \"disk\"\nrun = [\"df\"]\n[tools]\napprove = { disk = \"no\" }", 5, "tools.approve.disk", "tools.approve.disk names a command and no tool: a command has an approve of its own, and run_command is the tool that runs them all", 0},
	{"scope", "[workspace]\nscope = \"all\"", 2, "workspace.scope", `workspace.scope must be "person" or "shared"`, 0},

	{"command without a name", "\n[[command]]\nrun = [\"a\"]", 2, "command.name", "command.name is needed", 0},
	{"command without run", "[[command]]\nname = \"a\"\nrun = []", 3, "command.run", `command.run is needed: the program and its arguments, such as ["df", "-h"]`, 0},
	{"command of another type", "[[command]]\nname = \"a\"\nrun = \"df\"", 3, "command.run", `command.run wants a list of texts, such as ["one", "two"]`, 0},
	{"command twice", "[[command]]\nname = \"a\"\nrun = [\"a\"]\n[[command]]\nrun = [\"b\"]\nname = \"a\"", 6, "command.name", "command.name is already taken on line 2", 0},
	{"command's policy", "[[command]]\nname = \"a\"\nrun = [\"a\"]\n[[command]]\nname = \"b\"\napprove = \"yes\"\nrun = [\"b\"]", 6, "command.approve", `command.approve must be "no", "ask", "owner" or "second"`, 0},
	{"pattern", "[[command]]\nname = \"a\"\nrun = [\"a\"]\nparameters = { x = \"[\" }", 4, "command.parameters.x", "command.parameters.x has a pattern that is no regular expression", 0},
	{"choices and a pattern", "[[command]]\nname = \"a\"\nrun = [\"a\", \"{x}\"]\n[command.parameters.x]\npattern = \"y\"\nchoices = [\"y\"]", 4, "command.parameters.x", "command.parameters.x has a pattern and choices; take one of the two out", 0},
	{"no choices", "[[command]]\nname = \"a\"\nrun = [\"a\", \"{x}\"]\nparameters = { x = { choices = [] } }", 4, "command.parameters.x", "command.parameters.x wants at least one choice, and none of them twice or with a NUL in it", 0},
	{"a choice twice", "[[command]]\nname = \"a\"\nrun = [\"a\", \"{x}\"]\nparameters = { x = { choices = [\"s3cret\", \"b\", \"s3cret\"] } }", 4, "command.parameters.x", "command.parameters.x wants at least one choice, and none of them twice or with a NUL in it", 0},
	{"choices of another type", "[[command]]\nname = \"a\"\nrun = [\"a\", \"{x}\"]\nparameters = { x = { choices = \"y\" } }", 4, "command.parameters.x.choices", `command.parameters.x.choices wants a list of texts, such as ["one", "two"]`, 0},
	{"command's name", "[[command]]\nname = \"a b\"\nrun = [\"a\"]", 2, "command.name", "command.name wants 1 to 64 letters, digits, _ or -", 0},
	{"undeclared parameter", "[[command]]\nname = \"a\"\nrun = [\"a\", \"{s3cret}\"]", 3, "command.run", "command.run wants a program without parameters, then arguments in which each of the parameters stands as {name}, and no other", 0},
	{"unused parameter", "[[command]]\nname = \"a\"\nparameters = { x = \"y\" }\nrun = [\"a\"]", 4, "command.run", "command.run wants a program without parameters, then arguments in which each of the parameters stands as {name}, and no other", 0},
	{"parameter as the program", "[[command]]\nname = \"a\"\nparameters = { x = \"y\" }\nrun = [\"{x}\"]", 4, "command.run", "command.run wants a program without parameters, then arguments in which each of the parameters stands as {name}, and no other", 0},
	{"parameter's name", "[[command]]\nname = \"a\"\nrun = [\"a\", \"{X}\"]\n[command.parameters]\n\nX = \"y\"", 6, "command.parameters.X", `command.parameters.X wants another name: a small letter, then small letters, digits and _, and not "name"`, 0},
	{"parameter called name", "[[command]]\nname = \"a\"\nrun = [\"a\", \"{name}\"]\nparameters = { name = \"y\" }", 4, "command.parameters.name", `command.parameters.name wants another name: a small letter, then small letters, digits and _, and not "name"`, 0},
	{"inline commands", "command = [\n { name = \"a\", run = [\"a\"] },\n { name = \"a\", run = [\"a\"] },\n]", 3, "command.name", "command.name is already taken on line 2", 0},

	{"hook's point", guard + "[[hook]]\nrun = [\"a\"]\nat = \"befor_tool\"", 6, "hook.at", points + `; did you mean "before_tool"?`, 0},
	{"hook at no such point", "[[hook]]\nat = \"s3cret\"\nrun = [\"a\"]", 2, "hook.at", points, 0},
	{"hook at an empty point", "[[hook]]\nat = \"\"\nrun = [\"a\"]", 2, "hook.at", points, 0},
	{"hook without a point", guard + "\n[[hook]]\nrun = [\"a\"]", 5, "hook.at", `hook.at is needed: where in a step the hook is asked, such as "before_tool"`, 0},
	{"hook without run", "\n[[hook]]\nat = \"before_tool\"", 2, "hook.run", `hook.run is needed: the program and its arguments, such as ["df", "-h"]`, 0},
	{"hook of nothing", "[[hook]]\nat = \"before_tool\"\nrun = [\" \", \"a\"]", 3, "hook.run", `hook.run is needed: the program and its arguments, such as ["df", "-h"]`, 0},
	{"hook of another type", "[[hook]]\nat = \"before_tool\"\nrun = \"a\"", 3, "hook.run", `hook.run wants a list of texts, such as ["one", "two"]`, 0},
	{"hook with a NUL", "[[hook]]\nat = \"before_tool\"\nrun = [\n \"a\",\n \"\\u0000\",\n]", 5, "hook.run", "hook.run has a NUL in it, which no program can be given", 0},
	{"hook without time", guard + "timeout = \"0s\"", 4, "hook.timeout", "hook.timeout must be more than 0", 0},
	{"hook that takes long", guard + "timeout = \"60001ms\"", 4, "hook.timeout", "hook.timeout must be at most one minute, since every step waits for it", 0},
	{"slip in a hook", guard + "timout = \"1s\"", 4, "hook.timout", `unknown key "hook.timout"; did you mean "hook.timeout"?`, 0},
	{"one hook", "[hook]\nat = \"before_tool\"", 1, "hook", "hook wants a list of tables, each begun with [[hook]]", 0},

	{"heartbeat without a condition", "\n" + daily, 2, "heartbeat.condition", `heartbeat.condition is needed: without one nothing would hold the model back; kind = "always" wakes at each tick`, 0},
	{"empty condition", daily + "\n[heartbeat.condition]\n", 7, "heartbeat.condition.kind", `heartbeat.condition.kind is needed: "command", "http", "file", "expr", "idle", "all", "any" or "always"`, 0},
	{"condition of another type", daily + "condition = \"always\"", 6, "heartbeat.condition", "heartbeat.condition wants a table", 0},
	{"empty heartbeat", "[[heartbeat]]", 1, "heartbeat.name", "heartbeat.name is needed", 3},
	{"heartbeat twice", daily + "condition.kind = \"always\"\n" + daily + "condition.kind = \"always\"", 8, "heartbeat.name", "heartbeat.name is already taken on line 2", 0},
	{"zone", daily + "timezone = \"Mars/Phobos\"\ncondition.kind = \"always\"", 6, "heartbeat.timezone", `heartbeat.timezone wants a zone's name, such as "Europe/Berlin"`, 0},
	{"the machine's zone", daily + "timezone = \"Local\"\ncondition.kind = \"always\"", 6, "heartbeat.timezone", `heartbeat.timezone wants a zone's name, such as "Europe/Berlin"`, 0},
	{"heartbeat's name", strings.Replace(daily, "daily", "s3cret/a", 1) + "condition.kind = \"always\"", 2, "heartbeat.name", "heartbeat.name: needs 1 to 100 printable bytes, with no : ~ or / in it and no blanks at its ends", 0},
	{"heartbeat's name with a tilde", strings.Replace(daily, "daily", "a~b", 1) + "condition.kind = \"always\"", 2, "heartbeat.name", "heartbeat.name: needs 1 to 100 printable bytes, with no : ~ or / in it and no blanks at its ends", 0},
	{"second heartbeat's name", daily + "condition.kind = \"always\"\n" + strings.Replace(daily, "daily", "a:b", 1) + "condition.kind = \"always\"", 8, "heartbeat.name", "heartbeat.name: needs 1 to 100 printable bytes, with no : ~ or / in it and no blanks at its ends", 0},
	{"cron of six fields", cron("0 0 9 * * *"), 3, "heartbeat.cron", "heartbeat.cron has 6 fields and needs five: minute, hour, day of month, month, day of week", 0},
	{"cron out of range", cron("0 24 * * *"), 3, "heartbeat.cron", "heartbeat.cron has a field that cannot be read, for the hour; the five are minute, hour, day of month, month, day of week", 0},
	{"cron of no sense", cron("0 9 * * s3cret"), 3, "heartbeat.cron", "heartbeat.cron has a field that cannot be read, for the day of week; the five are minute, hour, day of month, month, day of week", 0},
	{"cron that never comes", cron("0 9 31 2 *"), 3, "heartbeat.cron", "heartbeat.cron fits no date, so it would never fall due", 0},
	{"cron with a zone", cron("CRON_TZ=UTC 0 9 * * *"), 3, "heartbeat.cron", "heartbeat.cron holds a time zone, which belongs into heartbeat.timezone", 0},
	{"no interval", cron("@every s3cret"), 3, "heartbeat.cron", `heartbeat.cron wants a length of time after @every, one second to ten years, such as "@every 10m" or "@every 1h30m"`, 0},
	{"no such word", cron("@s3cret"), 3, "heartbeat.cron", `heartbeat.cron knows "@hourly", "@daily", "@weekly", "@monthly", "@yearly" and "@every 10m"`, 0},
	{"heartbeat's tool", daily + "tools = [\n \"run_command\",\n \"run_comand\",\n]\ncondition.kind = \"always\"", 8, "heartbeat.tools", `heartbeat.tools names no tool; did you mean "run_command"?`, 0},
	{"heartbeat's tool in conversations only", daily + "tools = [\"create_heartbeat\"]\ncondition.kind = \"always\"", 6, "heartbeat.tools", "heartbeat.tools names a tool that is not offered when a heartbeat wakes", 0},
	{"person twice", strings.Replace(daily, "[\"web:me\"]", "[\"web:me\", \"web:me\"]", 1) + "condition.kind = \"always\"", 4, "heartbeat.for", "heartbeat.for: the name is empty or stands there twice", 0},
	{"always in a list", daily + "[heartbeat.condition]\nkind = \"any\"\nof = [\n { kind = \"file\", path = \"a\" },\n { kind = \"always\" },\n]", 10, "heartbeat.condition.of.kind", "heartbeat.condition.of.kind: always cannot stand in a list", 0},
	{"cooldown in a list", daily + "[heartbeat.condition]\nkind = \"any\"\nof = [\n { kind = \"file\", path = \"a\", cooldown = \"1h\" },\n]", 9, "heartbeat.condition.of", "heartbeat.condition.of: on, cooldown and timeout belong to the outermost condition", 0},
	{"no such kind", daily + "[heartbeat.condition]\nkind = \"s3cret\"", 7, "heartbeat.condition.kind", `heartbeat.condition.kind must be "command", "http", "file", "expr", "idle", "all", "any" or "always"`, 0},
	{"end", daily + "until = \"soon\"\ncondition.kind = \"always\"", 6, "heartbeat.until", `heartbeat.until wants a day such as "2027-01-31", or an instant such as "2027-01-31T18:00:00+01:00"`, 0},
	{"key of another kind", daily + "[heartbeat.condition]\nkind = \"file\"\npath = \"x\"\nrun = [\"a\"]", 9, "heartbeat.condition.run", `heartbeat.condition.run isn't read by a condition of kind "file"`, 0},
	{"file without an age", daily + "[heartbeat.condition]\nkind = \"file\"\npath = \"x\"\ntest = \"older_than\"", 9, "heartbeat.condition.test", "heartbeat.condition.test needs heartbeat.condition.age beside it", 0},
	{"age for nothing", daily + "[heartbeat.condition]\nkind = \"file\"\npath = \"x\"\nage = \"1d\"", 9, "heartbeat.condition.age", `heartbeat.condition.age is read only with test = "older_than"`, 0},
	{"any of none", daily + "[heartbeat.condition]\nkind = \"any\"\nof = []", 8, "heartbeat.condition.of", "heartbeat.condition.of is needed: the list of conditions", 0},
	{"command condition", daily + "[heartbeat.condition]\nkind = \"command\"", 6, "heartbeat.condition.run", `heartbeat.condition.run is needed: the program and its arguments, such as ["df", "-h"]`, 0},
	{"deep condition", daily + "[heartbeat.condition]\nkind = \"any\"\n[[heartbeat.condition.of]]\nkind = \"all\"\n[[heartbeat.condition.of.of]]\nkind = \"idle\"", 10, "heartbeat.condition.of.of.after", `heartbeat.condition.of.of.after is needed: for how long nobody spoke, such as "24h"`, 0},

	{"fallback of nobody", otherModel + "\n[[model.fallbacks]]\nname = \"b\"", 3, "model.fallbacks.provider", "model.fallbacks.provider is needed: which of the providers stands in", 0},
	{"fallback without a name", otherModel + "\n[[model.fallbacks]]\nprovider = \"openai\"", 3, "model.fallbacks.name", "model.fallbacks.name is needed: it says which model is to answer", 0},
	{"fallback of a fallback", otherModel + "\n[[model.fallbacks]]\nprovider = \"demo\"\nfallbacks = [{provider = \"demo\"}]", 5, "model.fallbacks.fallbacks", "model.fallbacks.fallbacks stands inside another; list them one after the other", 0},
	{"fallback without prices", otherModel + "\nmodel.price_in = 1.0\nmodel.price_out = 2.0\nmodel.fallbacks = [{provider = \"openai\", name = \"b\"}]\n[limits]\nmax_cost_usd = 1.0", 7, "limits.max_cost_usd", "limits.max_cost_usd needs model.price_in and model.price_out, and those of every fallback: without prices nothing can be held to it", 0},
	{"postgres", "[store]\nkind = \"postgres\"\nurl_env = \"PG\"", 2, "store.kind", `store.kind = "postgres" is not available in this version`, 1},
	{"http condition", daily + "[heartbeat.condition]\nkind = \"http\"\nurl = \"s3cret\"", 8, "heartbeat.condition.url", "heartbeat.condition.url: must begin with http:// or https://", 0},
	{"no address", daily + "[heartbeat.condition]\nkind = \"http\"", 6, "heartbeat.condition.url", "heartbeat.condition.url is needed: the address to look at", 0},
	{"address with a password", daily + "[heartbeat.condition]\nkind = \"http\"\nurl = \"https://a:s3cret@b\"", 8, "heartbeat.condition.url", "heartbeat.condition.url: must hold no user or password", 0},
	{"path into an answer", daily + "[heartbeat.condition]\nkind = \"http\"\nurl = \"http://b\"\nselect = \"s3cret[\"", 9, "heartbeat.condition.select", `heartbeat.condition.select: it is no path; write it like builds[0].state or items[*].id`, 0},
	{"no expression", daily + "[heartbeat.condition]\nkind = \"expr\"", 6, "heartbeat.condition.expr", `heartbeat.condition.expr is needed: what must be true, such as "weekday == 'Monday' and load > 4"`, 0},
	{"expression of no gauge", "[[gauge]]\nname = \"load\"\nrun = [\"a\"]\n" + daily + "[heartbeat.condition]\nkind = \"expr\"\nexpr = \"load > 1 and s3cret > 1\"", 11, "heartbeat.condition.expr", "heartbeat.condition.expr: in line 1 at character 14: the name is not known; there are date, day, days_since, hour, load, minute, month, time, unix, weekday, year", 0},
	{"expression that is no question", daily + "[heartbeat.condition]\nkind = \"expr\"\nexpr = \"hour\"", 8, "heartbeat.condition.expr", "heartbeat.condition.expr: its result must be true or false", 0},
	{"gauge without a program", "[[gauge]]\nname = \"a\"", 1, "gauge.run", `gauge.run is needed: the program and its arguments, such as ["df", "-h"]`, 0},
	{"gauge's name", "[[gauge]]\nname = \"s3cret-\"\nrun = [\"a\"]", 2, "gauge.name", "gauge.name: needs a letter, then letters, digits or _, 63 at most", 0},
	{"gauge named like the time", "[[gauge]]\nname = \"hour\"\nrun = [\"a\"]", 2, "gauge.name", "gauge.name: has a meaning of its own in expressions; take another", 0},
	{"quiet hours", "[attention]\nquiet = \"25:00-9\"", 2, "attention.quiet", `attention.quiet wants times of day from 00:00 to 23:59, such as "07:00"`, 0},
	{"no quiet hours", "[attention]\nquiet = \"08:00-08:00\"", 2, "attention.quiet", "attention.quiet begins and ends at the same time of day; leave it out to have no quiet hours", 0},
	{"digest", "[attention]\ndaily_cap = 3\ndigest = \"evening\"", 3, "attention.digest", `attention.digest wants a time of day, such as "18:00", or "after quiet", or both with a comma between`, 0},
	{"digest in quiet hours", "[attention]\nquiet = \"22:00-07:00\"\ndigest = \"06:59\"", 3, "attention.digest", "attention.digest: lies in the quiet hours", 0},
	{"cap below zero", "[attention]\ndaily_cap = -1", 2, "attention.daily_cap", "attention.daily_cap must not be negative", 0},

	{"discord's address", "[discord]\n\napi_url = \"discord.com\"", 3, "discord.api_url", "discord.api_url wants an address that begins with http:// or https://", 0},
	{"a server of no kind", "\n[[mcp]]\nname = \"a\"\ntools = [\"x\"]", 2, "mcp", "mcp needs a command to start, or the url of a server that runs", 0},
	{"a server of both kinds", "[[mcp]]\nname = \"a\"\ncommand = [\"a\"]\nurl = \"http://x\"\ntools = [\"x\"]", 4, "mcp.url", "mcp.url stands beside a command; a server is one or the other", 0},
	{"a server's name", "[[mcp]]\nname = \"S3cret\"\ncommand = [\"a\"]\ntools = [\"x\"]", 2, "mcp.name", "mcp.name wants small letters, digits and single _, 30 at most: the names of its tools begin with it", 0},
	{"a server twice", "[[mcp]]\nname = \"a\"\ncommand = [\"a\"]\ntools = [\"x\"]\n[[mcp]]\nname = \"a\"\ncommand = [\"a\"]\ntools = [\"x\"]", 6, "mcp.name", "mcp.name is already taken on line 2", 0},
	{"a server without tools", "[[mcp]]\nname = \"a\"\ncommand = [\"a\"]", 1, "mcp.tools", "mcp.tools is needed: the tools of the server that may be used, by the names it gives them", 0},
	{"reading without the tool", "[[mcp]]\nname = \"a\"\ncommand = [\"a\"]\ntools = [\"x\"]\nread_only = [\"s3cret\"]", 5, "mcp.read_only", "mcp.read_only names a tool that mcp.tools doesn't list", 0},
	{"a server's variables", "[[mcp]]\nname = \"a\"\ncommand = [\"a\"]\ntools = [\"x\"]\nenv = [\"s3cret-value\"]", 5, "mcp.env", "mcp.env wants names of environment variables; a value doesn't belong here", 0},
	{"a token for a command", "[[mcp]]\nname = \"a\"\ncommand = [\"a\"]\ntools = [\"x\"]\ntoken_env = \"T\"", 5, "mcp.token_env", "mcp.token_env is for a url; a command is given variables by env", 0},
	{"a host that is none", "[fetch]\nhosts = [\n \"example.org\",\n \"https://s3cret.org/x\",\n]", 4, "fetch.hosts", `fetch.hosts wants hosts of the public internet in small letters, such as "example.com", "*.example.com" or "example.com:8443"`, 0},
	{"a host inside", "[fetch]\nhosts = [\"10.0.0.1\"]", 2, "fetch.hosts", `fetch.hosts wants hosts of the public internet in small letters, such as "example.com", "*.example.com" or "example.com:8443"`, 0},
	{"embedder", "[diary]\nembedder = \"openai\"", 1, "diary.model", "diary.model is needed: it says which model makes the vectors", 0},
	{"embedder's address", "[diary]\nembedder = \"openai\"\nmodel = \"x\"\nbase_url = \"x\"", 4, "diary.base_url", "diary.base_url wants an address that begins with http:// or https://", 0},
	{"no embedder", "[diary]\nmodel = \"x\"", 2, "diary.model", `diary.model is for embedder = "openai" only`, 0},
	{"score", "[diary]\nmin_score = 1.5", 2, "diary.min_score", "diary.min_score must be from 0 to 1", 0},
	{"telemetry", "[telemetry]\nprometheus = true\ncontent = true", 3, "telemetry.content", "[telemetry] is not available in this version", 0},

	{"first by line", "[tools]\napprove = { a = \"x\" }\n[limits]\nbad_key_here = 1\nmax_steps = -1", 2, "tools.approve.a", `tools.approve.a must be "no", "ask", "owner" or "second"`, 2},
}

// cron is a heartbeat with this cron spec on line 3.
func cron(spec string) string {
	return strings.Replace(daily, "0 9 * * *", spec, 1) + "condition.kind = \"always\""
}

func TestFaultsNameLineAndKey(t *testing.T) {
	for _, test := range faulty {
		t.Run(test.name, func(t *testing.T) {
			_, err := load(t, test.document)
			var got *Error
			if !errors.As(err, &got) {
				t.Fatalf("Load = %v, want a fault", err)
			}
			want := Error{File: got.File, Line: test.line, Key: test.key, Say: test.say, More: test.more}
			if *got != want {
				t.Errorf("got  %+v\nwant %+v", *got, want)
			}
			if filepath.Base(got.File) != "config.toml" || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the error is %q", err)
			}
		})
	}
}

func TestErrorText(t *testing.T) {
	for want, fault := range map[string]Error{
		"c.toml:12: x is needed":                     {File: "c.toml", Line: 12, Say: "x is needed"},
		"c.toml:12: x is needed (and 1 more fault)":  {File: "c.toml", Line: 12, Say: "x is needed", More: 1},
		"c.toml:12: x is needed (and 2 more faults)": {File: "c.toml", Line: 12, Say: "x is needed", More: 2},
		"c.toml: not valid TOML":                     {File: "c.toml", Say: "not valid TOML"},
	} {
		if got := fault.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestEveryUnavailableFeatureIsRefused uses each line of the table in a config.
func TestEveryUnavailableFeatureIsRefused(t *testing.T) {
	for _, feature := range unavailable {
		document := fmt.Sprintf("%s = %q", feature.key, feature.value)
		if inner, ok := strings.CutPrefix(feature.key, "heartbeat."); ok {
			document = fmt.Sprintf("%s%s = %q", daily, inner, feature.value)
		}
		_, err := load(t, document)
		if err == nil || !strings.HasSuffix(err.Error(), feature.write+" is not available in this version") {
			t.Errorf("%s: %v", feature.write, err)
		}
	}
}

func TestNearestFindsOneSlip(t *testing.T) {
	keys := knownKeys()
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SampledFrom(keys).Draw(t, "key")
		if len(lastPart(key)) < 4 {
			return
		}
		at := len(key) - 1 - rapid.IntRange(0, len(lastPart(key))-2).Draw(t, "place")
		wrong := rapid.SampledFrom([]string{
			key[:at] + key[at+1:],
			key[:at] + "q" + key[at:],
			key[:at] + "q" + key[at+1:],
			key[:at-1] + key[at:at+1] + key[at-1:at] + key[at+1:],
		}).Draw(t, "wrong")
		near, found := nearest(wrong, nil)
		if !found || distance(wrong, near) > 1 {
			t.Fatalf("for %q nearest is %q, %t", wrong, near, found)
		}
	})
}

func TestNearestOfWords(t *testing.T) {
	words := []string{"chat", "check", "sessions", "why"}
	for wrong, want := range map[string]string{"chek": "check", "Chat": "chat", "cat": "chat", "wyh": "why", "sess": "sessions", "c": "", "bogus": "", "": ""} {
		if near, found := Nearest(wrong, words); near != want || found != (want != "") {
			t.Errorf("for %q nearest is %q, %t; want %q", wrong, near, found, want)
		}
	}
	if near, found := Nearest("any", nil); found {
		t.Errorf("of none nearest is %q", near)
	}
}

func TestDistanceIsAMeasure(t *testing.T) {
	word := rapid.StringMatching(`[a-c]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		d := distance(a, b)
		if d != distance(b, a) || (d == 0) != (a == b) || d > max(len(a), len(b)) || d < max(len(a), len(b))-min(len(a), len(b)) {
			t.Fatalf("distance of %q and %q is %d, and back %d", a, b, d, distance(b, a))
		}
	})
}

func TestKnownKeys(t *testing.T) {
	keys := knownKeys()
	for _, want := range []string{
		"data_dir", "model.fallbacks", "limits.user_daily_cost_usd", "tools.approve", "command.parameters",
		"subagent.limits.max_steps", "heartbeat.condition.of", "telemetry.content",
	} {
		if !slices.Contains(keys, want) {
			t.Errorf("%s is not known", want)
		}
	}
	slices.Sort(keys)
	if len(slices.Compact(slices.Clone(keys))) != len(keys) {
		t.Error("a key is listed twice")
	}
}

// secret is what must never be in an error, whatever the file looks like.
const secret = "xoxb-1234567890-AbCdEf"

// FuzzRead feeds any bytes: they are a config or a fault, without a panic, and no secret is told.
func FuzzRead(f *testing.F) {
	for _, test := range faulty {
		f.Add(test.document)
	}
	for _, seed := range []string{
		"%s", "%s = 1", "[%s]", "[[%s]]", "x = %s", "model.name = \"%s", "model = { %s", "[model]\nprovider = \"%s\"", "slack.bot_token_env = \"%s\"",
		"\"%s\".x = 1", "model.\"%s\" = 1", "tools.approve.\"%s\" = 1", "tools.approve = { x = \"%s\" }", "access.allow = [\"%s\"]", "%s = 1\n%s = 1", "[\"%s\"]\n[\"%s\"]",
		"web.listen = \"%s\"", "limits.turn_timeout = \"%s\"", "model.base_url = \"https://%s@x\"", "model.base_url = \"%s:%%zz\"", "command = [{name=\"%s\"},{name=\"%s\"}]",
		"[[command]]\nname = \"a\"\nrun = [\"a\"]\nparameters = { x = \"(%s\" }", "[[command]]\nparameters.\"%s\" = \"(\"", daily + "timezone = \"%s\"",
		"[[hook]]\nat = \"%s\"\nrun = [\"%s\"]\ntimeout = \"%s\"", daily + "until = \"%s\"", daily + "condition.kind = \"%s\"", "\xef\xbb\xbf[model]", "a = 1e999", "x = [[[[]]]]", "\x00",
	} {
		f.Add(strings.ReplaceAll(seed, "%s", secret))
	}
	f.Fuzz(func(t *testing.T, document string) {
		_, err := read("config.toml", "/etc", []byte(document))
		if err == nil {
			return
		}
		var fault *Error
		if !errors.As(err, &fault) || fault.Line < 0 || fault.Line > strings.Count(document, "\n")+1 || fault.Say == "" {
			t.Errorf("the fault is %#v", err)
		}
		if text := err.Error(); strings.Contains(text, secret) || strings.Contains(text, "\n") {
			t.Errorf("the error is %q", text)
		}
	})
}
