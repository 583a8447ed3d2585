package checks

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	"github.com/refit-dev/refit/api/v1alpha1"
)

const (
	// costLimit of one evaluation, in the units of the CEL library: thousands of pods may be looked at, and no pairs of them.
	costLimit = 2_000_000
	// interruptEvery is after how many steps of a comprehension an evaluation sees that its time is over.
	interruptEvery = 100
	// mostCompiled expressions are remembered.
	mostCompiled = 512
)

// variables of an expression, all as kubectl get -o json shows them.
var variables = []string{"machine", "machines", "node", "nodes", "pods"}

// Compiler compiles the expressions of checks, and remembers them. The zero value is ready.
type Compiler struct {
	mu    sync.Mutex
	env   *cel.Env
	known map[string]compiled
}

// compiled is an expression that can be asked, or why it cannot.
type compiled struct {
	program cel.Program
	uses    []string // of the variables
	err     error
}

// ofOne says that the expression is about the machine that is to go, and not its pool alone.
func (c compiled) ofOne() bool { return c.usesAny("machine", "node") }

func (c compiled) usesAny(names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(c.uses, n) })
}

// Invalid says which of the checks can never be asked as it is written; nil when all can.
func (c *Compiler) Invalid(all []v1alpha1.Check) error {
	for _, check := range all {
		if check.CEL == "" {
			continue
		}
		if err := c.compile(check.CEL).err; err != nil {
			return fmt.Errorf("check %q: %w", check.Name, err)
		}
	}
	return nil
}

func (c *Compiler) compile(expression string) compiled {
	c.mu.Lock()
	defer c.mu.Unlock()
	if out, ok := c.known[expression]; ok {
		return out
	}
	if c.known == nil || len(c.known) >= mostCompiled {
		c.known = map[string]compiled{}
	}
	out := c.compileNow(expression)
	c.known[expression] = out
	return out
}

func (c *Compiler) compileNow(expression string) compiled {
	if c.env == nil {
		env, err := newEnv()
		if err != nil {
			return compiled{err: err}
		}
		c.env = env
	}
	ast, issues := c.env.Compile(expression)
	if issues.Err() != nil {
		return compiled{err: fmt.Errorf("the expression cannot be compiled: %s", firstLines(issues.Err().Error()))}
	}
	if out := ast.OutputType(); !out.IsExactType(cel.BoolType) && !out.IsExactType(cel.DynType) {
		return compiled{err: fmt.Errorf("the expression gives %s, and must give bool", out)}
	}
	program, err := c.env.Program(ast, cel.CostLimit(costLimit), cel.InterruptCheckFrequency(interruptEvery))
	if err != nil {
		return compiled{err: fmt.Errorf("the expression cannot be evaluated: %w", err)}
	}
	var uses []string
	for _, ref := range ast.NativeRep().ReferenceMap() {
		if slices.Contains(variables, ref.Name) && !slices.Contains(uses, ref.Name) {
			uses = append(uses, ref.Name)
		}
	}
	return compiled{program: program, uses: uses}
}

func newEnv() (*cel.Env, error) {
	opts := []cel.EnvOption{ext.Strings(), cel.OptionalTypes()}
	for _, name := range variables {
		of := cel.DynType
		if strings.HasSuffix(name, "s") {
			of = cel.ListType(cel.DynType)
		}
		opts = append(opts, cel.Variable(name, of))
	}
	env, err := cel.NewEnv(opts...)
	if err != nil {
		return nil, fmt.Errorf("setting CEL up: %w", err)
	}
	return env, nil
}

// firstLines keeps a message short: the library draws a picture of the expression below.
func firstLines(text string) string {
	const most = 400
	line, _, _ := strings.Cut(text, "\n")
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + "…"
	}
	return line
}
