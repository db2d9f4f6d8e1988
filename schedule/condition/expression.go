package condition

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	exprfile "github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"

	"nudge/schedule"
)

// maxExpression bounds an expression in bytes and in what it is made of. It has no loops, so that this bounds its time too.
const (
	maxExpression = 2000
	maxNodes      = 500
)

// builtins are the library's functions that expressions may use. Those that go over lists are not among them.
var builtins = []string{"abs", "ceil", "floor", "round", "int", "float", "string", "min", "max", "lower", "upper", "trim", "hasPrefix", "hasSuffix"}

// clockNames are what an expression knows of the time, as people of the heartbeat's zone read it.
func clockNames(now time.Time) map[string]any {
	return map[string]any{
		"year": now.Year(), "month": int(now.Month()), "day": now.Day(), "weekday": now.Weekday().String(),
		"hour": now.Hour(), "minute": now.Minute(), "time": now.Format("15:04"), "date": now.Format(time.DateOnly), "unix": now.Unix(),
	}
}

const daysSince = "days_since"

// reserved reports whether a name means something in every expression.
func reserved(name string) bool {
	_, known := clockNames(time.Time{})[name]
	return known || name == daysSince || slices.Contains(builtins, name) || slices.Contains(words, name)
}

// words are the language's own.
var words = []string{"and", "or", "not", "in", "contains", "matches", "startsWith", "endsWith", "let", "if", "else", "nil", "true", "false"}

// expression is true when an expression over gauges and the time is.
type expression struct {
	program *vm.Program
	gauges  *Gauges
	uses    []string // the gauges that it names
	zone    *time.Location
	now     func() time.Time
}

func newExpression(spec schedule.Spec, env Env) (schedule.Condition, error) {
	zone, err := time.LoadLocation(env.Zone)
	if err != nil {
		return nil, fmt.Errorf("heartbeat.condition.expr: the time zone is not known: %w", err)
	}
	e := &expression{gauges: env.Gauges, zone: zone, now: env.Now}
	if env.Confined {
		e.gauges = nil // they tell of the operator's machine
	}
	if e.program, err = e.compile(spec.Expr); err != nil {
		return nil, fmt.Errorf("heartbeat.condition.expr: %w", err)
	}
	return e, nil
}

func (e *expression) compile(text string) (program *vm.Program, err error) {
	if len(text) > maxExpression {
		return nil, fmt.Errorf("it is longer than %d bytes", maxExpression)
	}
	// The library is foreign code and the text anybody's.
	defer func() {
		if caught := recover(); caught != nil {
			program, err = nil, errors.New("it cannot be read")
		}
	}()
	known := e.environment(time.Time{}, nil)
	seen := survey{names: map[string]bool{}}
	options := []expr.Option{expr.Env(known), expr.AsBool(), expr.MaxNodes(maxNodes), expr.DisableAllBuiltins(), expr.Patch(&seen)}
	for _, name := range builtins {
		options = append(options, expr.EnableBuiltin(name))
	}
	program, err = expr.Compile(text, options...)
	switch {
	case err != nil:
		return nil, unreadable(err, known)
	case seen.loops:
		return nil, errors.New("it goes over a list; it can compute with numbers and texts only")
	}
	for _, gauge := range e.gauges.names() {
		if seen.names[gauge] {
			e.uses = append(e.uses, gauge)
		}
	}
	return program, nil
}

// survey notes the names that an expression uses, and whether it goes over lists: the library knows those functions even
// when they are disabled.
type survey struct {
	names map[string]bool
	loops bool
}

func (s *survey) Visit(node *ast.Node) {
	switch node := (*node).(type) {
	case *ast.IdentifierNode:
		s.names[node.Value] = true
	case *ast.BuiltinNode:
		s.loops = s.loops || !slices.Contains(builtins, node.Name)
	case *ast.BinaryNode:
		s.loops = s.loops || node.Operator == ".."
	}
}

var unknownName = regexp.MustCompile(`unknown name (\S+)`)

// unreadable says where an expression is wrong. Pieces of it stand in quotes, so that they can be left out where they must.
func unreadable(err error, known map[string]any) error {
	var fault *exprfile.Error
	if !errors.As(err, &fault) {
		return errors.New("its result must be true or false")
	}
	message, _, _ := strings.Cut(fault.Message, "\n")
	at := fmt.Sprintf("in line %d at character %d: ", fault.Line, fault.Column+1)
	if name := unknownName.FindStringSubmatch(message); name != nil {
		return fmt.Errorf("%sthe name %q is not known; there are %s", at, name[1], strings.Join(slices.Sorted(maps.Keys(known)), ", "))
	}
	return fmt.Errorf("%s%s", at, message)
}

// environment is what an expression can name: the time, days_since, and the gauges with their readings.
func (e *expression) environment(now time.Time, readings map[string]float64) map[string]any {
	all := clockNames(now)
	all[daysSince] = func(date string) (int, error) { return wholeDays(date, now) }
	for _, gauge := range e.gauges.names() {
		all[gauge] = readings[gauge]
	}
	return all
}

// wholeDays counts the dates from one to today on the clocks of now's zone.
func wholeDays(text string, now time.Time) (int, error) {
	from, err := time.Parse(time.DateOnly, text)
	if err != nil {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return 0, errors.New(`days_since wants a date such as "2027-01-31"`)
		}
		at = at.In(now.Location())
		from = time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.UTC)
	}
	today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	return int(today.Sub(from) / (24 * time.Hour)), nil
}

func (e *expression) Check(ctx context.Context, _ string) (schedule.Finding, error) {
	if err := ctx.Err(); err != nil {
		return schedule.Finding{}, fmt.Errorf("check an expression: %w", err)
	}
	readings := map[string]float64{}
	var seen []string
	for _, gauge := range e.uses {
		value, err := e.gauges.read(ctx, gauge)
		if err != nil {
			return schedule.Finding{}, fmt.Errorf("check an expression: %w", err)
		}
		readings[gauge] = value
		seen = append(seen, gauge+" is "+strconv.FormatFloat(value, 'f', -1, 64))
	}
	now := e.now().In(e.zone)
	result, err := expr.Run(e.program, e.environment(now, readings))
	if err != nil {
		return schedule.Finding{}, fmt.Errorf("check an expression: %s", firstLine(err))
	}
	seen = append(seen, "it is "+now.Format("Monday 2006-01-02 15:04 MST"))
	return schedule.Finding{True: result == true, Evidence: evidence(strings.Join(seen, "; ")), Public: len(e.uses) == 0}, nil
}

// firstLine leaves out the drawing of the place that the library's errors end with.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
