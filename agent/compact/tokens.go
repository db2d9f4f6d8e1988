package compact

import (
	"hash/maphash"
	"math"
	"sync"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer/codec"

	"nudge/agent/model"
)

// Counter counts the tokens of a text. It may be called concurrently, and gives the same number each time unless it
// says otherwise.
type Counter interface {
	Count(text string) int
}

// The kinds of counters.
const (
	O200k    = "o200k"    // the vocabulary of OpenAI's newer models, exact for those
	Estimate = "estimate" // from the number of bytes, for all others
)

// NewCounter makes a counter of a kind; any kind but O200k gives the estimate. It remembers what it has counted, so
// that messages which do not change are counted once. The vocabulary is loaded at the first count and takes some
// 25 MB from then on, once for all counters.
func NewCounter(kind string) Counter {
	if kind == O200k {
		return &remembering{count: countO200k}
	}
	return &remembering{count: estimate}
}

// What surrounds texts in a request, in tokens: rather too much than too little, since providers differ.
const (
	perRequest = 3
	perMessage = 4
	perCall    = 12 // with its id
	perTool    = 12
)

// Tokens is how many tokens a request with these parts has.
func Tokens(count Counter, system string, tools []model.Tool, messages []model.Message) int {
	sum := perRequest
	if system != "" {
		sum += perMessage + count.Count(system)
	}
	for _, t := range tools {
		sum += perTool + count.Count(t.Name) + count.Count(t.Description) + countBytes(count, t.Schema)
	}
	for _, m := range messages {
		sum += MessageTokens(count, m)
	}
	return sum
}

// MessageTokens is how many tokens one message has in a request. What the model thought counts as if it were sent.
func MessageTokens(count Counter, m model.Message) int {
	sum := perMessage + count.Count(m.Text) + count.Count(m.Reasoning)
	for _, c := range m.Calls {
		sum += callTokens(count, c)
	}
	return sum
}

func callTokens(count Counter, c model.Call) int {
	return perCall + count.Count(c.Name) + count.Count(c.Arguments)
}

// maxRemembered is how many counts each of the two generations of a remembering counter holds: 1 MB or so.
const maxRemembered = 1 << 15

var seed = maphash.MakeSeed()

// remembering is a counter that counts each text once. It keeps no text: two texts of one hash would share a count,
// which no session lives to see.
type remembering struct {
	count func(string) int

	mu         sync.Mutex
	young, old map[uint64]int
}

// Count counts a text, or remembers.
func (r *remembering) Count(text string) int {
	if text == "" {
		return 0
	}
	key := maphash.String(seed, text)
	n, known := r.recall(key)
	if !known {
		n = r.count(text)
		r.remember(key, n)
	}
	return n
}

// countBytes counts a text that is kept as bytes, without copying it where its count is remembered.
func countBytes(count Counter, text []byte) int {
	r, ok := count.(*remembering)
	if !ok || len(text) == 0 {
		return count.Count(string(text))
	}
	n, known := r.recall(maphash.Bytes(seed, text))
	if !known {
		n = r.Count(string(text))
	}
	return n
}

// recall gives a count that is remembered. One of the old generation becomes one of the young.
func (r *remembering) recall(key uint64) (n int, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n, known = r.young[key]; known {
		return n, true
	}
	if n, known = r.old[key]; known {
		r.put(key, n)
	}
	return n, known
}

func (r *remembering) remember(key uint64, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.put(key, n)
}

// put makes a count one of the young generation. The caller holds mu.
func (r *remembering) put(key uint64, n int) {
	if r.young == nil || len(r.young) >= maxRemembered {
		r.old, r.young = r.young, map[uint64]int{}
	}
	r.young[key] = n
}

// o200k is the vocabulary. Loading it takes some tens of milliseconds.
var o200k = sync.OnceValue(codec.NewO200kBase)

// longestPiece bounds what is tokenized at once, in bytes. The splitting takes time with the square of a run of
// mixed white space, 16 s for 200 KB of it; in pieces it does not. Each cut adds a token at most.
const longestPiece = 2 << 10

func countO200k(text string) int {
	sum := 0
	for text != "" {
		end := len(text)
		if end > longestPiece {
			end = runeStart(text, longestPiece)
		}
		n, err := o200k().Count(text[:end])
		if err != nil {
			n = estimate(text[:end])
		}
		sum += n
		text = text[end:]
	}
	return sum
}

// estimate is one token for four bytes of ASCII, five of other alphabets, three of scripts without an alphabet and
// two of pictures.
func estimate(text string) int {
	var bytes [utf8.UTFMax + 1]int
	for i := 0; i < len(text); {
		_, size := utf8.DecodeRuneInString(text[i:])
		bytes[size] += size
		i += size
	}
	return int(math.Ceil(float64(bytes[1])/4 + float64(bytes[2])/5 + float64(bytes[3])/3 + float64(bytes[4])/2))
}

// The bounds of a Calibrated counter's ratio, and the shares of a new observation that it takes: much of one that
// says there are more tokens than thought, little of one that says there are fewer.
const (
	leastRatio, mostRatio = 0.5, 4.0
	upwards, downwards    = 0.5, 0.1
	leastTold             = 200 // tokens of a request that says something about the ratio
)

// Calibrated is a counter corrected by what the provider of one model counted. Its counts change when it learns. It
// may be used concurrently.
type Calibrated struct {
	base Counter

	mu      sync.Mutex
	ratio   float64
	learned bool
}

// NewCalibrated wraps a counter; until it has learned something it counts as that does.
func NewCalibrated(base Counter) *Calibrated { return &Calibrated{base: base, ratio: 1} }

// Count counts a text, corrected and rounded up.
func (c *Calibrated) Count(text string) int {
	return int(math.Ceil(float64(c.base.Count(text)) * c.Ratio()))
}

// Ratio is what counts are multiplied with, from 0.5 to 4.
func (c *Calibrated) Ratio() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ratio
}

// Learn takes how many input tokens the provider reported for a request, those read from its cache included. It errs
// on the side of too many: the ratio rises fast and sinks slowly. Small requests, and reports of nothing, teach nothing.
func (c *Calibrated) Learn(req model.Request, reported int) {
	if reported <= 0 {
		return
	}
	counted := Tokens(c.base, req.System, req.Tools, req.Messages)
	if counted < leastTold {
		return
	}
	seen := min(max(float64(reported)/float64(counted), leastRatio), mostRatio)
	c.mu.Lock()
	defer c.mu.Unlock()
	share := downwards
	if seen > c.ratio {
		share = upwards
	}
	c.ratio += share * (seen - c.ratio)
	c.learned = true
}

// Resume takes a ratio that a counter of the same model had before, in an earlier process, unless this one has learned
// something already.
func (c *Calibrated) Resume(ratio float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.learned && ratio > 0 {
		c.ratio, c.learned = min(max(ratio, leastRatio), mostRatio), true
	}
}
