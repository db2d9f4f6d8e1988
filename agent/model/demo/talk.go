package demo

import (
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
)

// smallTalk are things that people say without wanting anything done.
var smallTalk = []struct {
	words   *pattern
	answers []string
}{
	{phrase(`(?:thanks|thank you|thx|cheers|great|nice|cool|perfect|well done|awesome|good (?:job|bot|work))(?: (?:a lot|so much|very much|nudge|you|that's great))*`),
		[]string{"You're welcome.", "Gladly.", "Any time. It was only patterns."}},
	{phrase(`(?:bye|goodbye|see you|good night|cu|ciao|later)(?: .*)?`),
		[]string{"Goodbye!", "See you. I'll forget nothing, as I know only what this conversation holds.", "Bye!"}},
	{phrase(`(?:how are you|how do you do|how's it going|how is it going|what's up|are you (?:ok|okay|well|there))(?: .*)?`),
		[]string{"As well as a table of patterns can be. And you?", "Fine, thanks. I have no moods, being a demo model.", "All my patterns are in order, thank you."}},
	{phrase(`(?:(?:i am|i'm) (?:fine|good|ok|okay|well|tired|bored|sad|happy|great)|(?:fine|good|not bad|so so))(?: .*)?`),
		[]string{"Good that you say so. What shall I do?", "I see, in the sense in which a pattern can. Shall I do something?"}},
	{phrase(`(?:ok|okay|yes|yep|sure|right|fine|alright|i see|got it|understood|hm+|aha|interesting|no)`),
		[]string{"All right.", "Good. What next?", "I'm here when you want something."}},
	{phrase(`(?:tell me a |a )?(?:joke|something funny)|make me laugh`),
		[]string{"A pattern walks into a bar. Nobody matches.", "I know a joke about a stateless function, but I can't remember it.", "My best joke needs a language model."}},
	{phrase(`(?:do you (?:like|love|think|feel|dream|sleep)|can you (?:think|feel)|are you (?:alive|happy|conscious|smart))\b.*`),
		[]string{"No. I'm a handful of patterns, and quite content with it.", "I don't, I only match words."}},
	{phrase(`(?:sorry|my bad|oops|excuse me)`), []string{"No harm done.", "Don't worry."}},
}

// pick chooses an answer by what was said, so that the same words get the same answer.
func pick(words string, answers ...string) string {
	h := fnv.New32a()
	h.Write([]byte(words))
	return answers[h.Sum32()%uint32(len(answers))]
}

func talkIntent(_ *reading, c clause) act {
	for _, talk := range smallTalk {
		if talk.words.MatchString(c.plain) {
			return saying("%s", pick(c.plain, talk.answers...))
		}
	}
	return nil
}

var (
	dropWords     = phrase(`(?:never mind|nevermind|nvm|forget (?:it|that|about it)|stop (?:that|it)|cancel(?: (?:that|it|everything))?|leave (?:it|that|\S+)(?: alone| as it is)?|don't(?: (?:do|delete|touch|write|run) (?:it|that|anything|\S+))?|do not(?: (?:do|delete|touch|write|run) (?:it|that|anything|\S+))?|keep (?:it|\S+)|no,? (?:stop|don't|thanks|thank you)|no)`)
	timeWords     = phrase(`(?:what(?:'s| is)?|tell me|do you know|which|give me|show me)(?: the| what| current| today's| day| of)*(?: (?:time|date|day|weekday|year|month))(?: (?:is it|it is|is today|today|now|right now|is it today|is it now|do we have|of the week|and time|and date|and the date|and the time))*|what day is (?:it|today)(?: today)?|(?:the )?(?:time|date)`)
	sentenceBreak = expression(`\n|\.\s+`)
	wantsTime     = expression(`(?i)\btime\b`)
	clockIn       = expression(`\b\d{1,2}:\d{2}\b`)
	dateIn        = expression(`(?i)\b\d{4}-\d{2}-\d{2}\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b[^\n]*\d|\b\d{1,2}\.? (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.? \d{4}\b|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]* \d{1,2},? \d{4}\b`)
)

// dropIntent takes back what was asked for, if that was still going on.
func dropIntent(r *reading, c clause) act {
	if !dropWords.MatchString(c.plain) || strings.EqualFold(c.plain, "no") && len(r.cutOff) == 0 {
		return nil
	}
	return saying("%s", pick(c.plain, "All right, I leave it at that.", "Good, I stop there."))
}

// timeIntent quotes the time that the request tells, for there is no other clock here.
func timeIntent(r *reading, c clause) act {
	if !timeWords.MatchString(c.plain) {
		return nil
	}
	wanted := dateIn
	if wantsTime.MatchString(c.plain) {
		wanted = clockIn
	}
	for _, place := range r.places() {
		if wanted.MatchString(place) {
			return saying("I have no clock. The last that I was told of it: %s", oneLine(strings.Trim(place, "[] ")))
		}
	}
	return saying("I have no clock, and this conversation doesn't tell me.")
}

// places are where a time may be told, the newest first: marks, and then the sentences of the system prompt.
func (r *reading) places() []string {
	var places []string
	for _, text := range slices.Backward(r.texts) {
		_, marks := splitMarks(text)
		for _, mark := range marks {
			if len(mark) <= shortQuote && !toldNote.MatchString(mark) {
				places = append(places, mark)
			}
		}
	}
	return append(places, sentenceBreak.Split(r.system, -1)...)
}

var (
	nameWords  = phrase(`(?:what(?:'s| is) my name|who am i|do you know (?:my name|who i am))(?: .*)?`)
	nameInText = expression(`\b(?:You talk with|The person(?:'s name)? is|You are talking (?:to|with))\s+([^\n]{1,80}?)\.(?:\s|$)`)
)

// nameIntent tells the person's name if the system prompt does.
func nameIntent(r *reading, c clause) act {
	if !nameWords.MatchString(c.plain) {
		return nil
	}
	if m := nameInText.FindStringSubmatch(r.system); m != nil {
		return saying("I was told that you are %s.", m[1])
	}
	return saying("This conversation doesn't tell me your name.")
}

var saidWords = phrase(`what (?:did|have) i (?:just )?(?:say|said|ask|asked|write|written|tell you|told you)(?: (?P<first>first|at first|in the beginning|at the beginning))?(?: you| before(?: that)?| last| last time| just now| earlier| so far)*`)

// saidIntent quotes what the person said before.
func saidIntent(r *reading, c clause) act {
	m := saidWords.FindStringSubmatch(c.plain)
	switch {
	case m == nil:
		return nil
	case len(r.earlier) == 0:
		return saying("As far as I can see, this is the first thing that you say here.")
	case m[1] != "":
		return saying("The first that I can see: %s", quoteShort(r.earlier[0], longQuote))
	}
	return saying("Before this you said: %s", quoteShort(r.earlier[len(r.earlier)-1], longQuote))
}

var (
	toldNote = expression(`(?s)\[heartbeat ("(?:[^"\\\n]|\\.)*") told the person: ("(?:[^"\\]|\\.)*")(?:; what the check saw(?:, as data)?: ("(?:[^"\\]|\\.)*"|[^"].*?))?\](?:\s*\n|\s*$)`)
	// digestNote is how the agent tells of what was held back and told in one message.
	digestNote = expression(`(?s)\[the person was told in one message what had been held back from them[^"\n]*: ("(?:[^"\\]|\\.)*")\]`)
	noteAsks   = expression(`(?i)^(?:which|what|why|where|how|when|who|tell me more|more|details|and\b|really|say more|explain|is it|are they)\b`)
)

// noteIntent answers a question after a heartbeat spoke, out of what it said and what its check saw.
func noteIntent(r *reading, c clause) act {
	if !noteAsks.MatchString(c.plain) {
		return nil
	}
	for _, text := range slices.Backward(r.texts) {
		if digest := digestNote.FindStringSubmatch(text); digest != nil {
			return saying("I told you in one message what had been held back:\n%s", quote(unescape(digest[1]), longQuote))
		}
		notes := toldNote.FindAllStringSubmatch(text, -1)
		if len(notes) == 0 {
			continue
		}
		note := notes[len(notes)-1]
		answer := "The heartbeat " + unescape(note[1]) + " told you: " + trim(unescape(note[2]), longQuote)
		if saw := unescape(note[3]); saw != "" {
			return saying("%s\nWhat its check saw: %s", answer, quoteShort(saw, longQuote))
		}
		return saying("%s\nMore than that isn't noted here.", answer)
	}
	return nil
}

// unescape reads a quoted text back.
func unescape(quoted string) string {
	if text, err := strconv.Unquote(strings.TrimSpace(quoted)); err == nil {
		return text
	}
	return strings.Trim(strings.TrimSpace(quoted), `"`)
}

// cameOf is how the agent tells of a call that was approved late.
var cameOf = expression(`(?s)^\[(.+ approved the call of .+)\]\s+Tell the person what came of it\.?$`)

// newsAct answers a message that holds no words of a person, such as what became of a call that waited.
func newsAct(r *reading) act {
	if m := cameOf.FindStringSubmatch(r.words); m != nil {
		return saying("This came in: %s", trim(m[1], longQuote))
	}
	if news := strings.Trim(r.news, "[] \n"); news != "" {
		return saying("This came in: %s", trim(news, longQuote))
	}
	return saying("%s", r.help())
}
