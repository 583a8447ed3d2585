package docs

import (
	"fmt"
	"regexp"
	"strings"
)

// Command is one command line of a page.
type Command struct {
	// Where it stands, as file:line.
	Where string
	// Words after the program's name.
	Words []string
	// Mentioned commands stand in prose and may leave out their arguments.
	Mentioned bool
}

// inline is a span of code; with a dagger behind it, it is of what is not there yet.
var inline = regexp.MustCompile("`([^`\n]+)`(†?)")

// Commands are all command lines of a program, such as "kubectl refit", in all pages.
func Commands(program string) ([]Command, error) {
	pages, err := Pages()
	if err != nil {
		return nil, err
	}
	var out []Command
	for _, p := range pages {
		blocks, prose := p.Blocks()
		for _, b := range blocks {
			for _, words := range Calls(b.Text, program) {
				out = append(out, Command{Where: b.Where, Words: words})
			}
		}
		for i, line := range strings.Split(prose, "\n") {
			for _, span := range inline.FindAllStringSubmatch(line, -1) {
				if span[2] != "" {
					continue
				}
				for _, words := range calls(span[1], program) {
					out = append(out, Command{Where: fmt.Sprintf("%s:%d", p.Path, i+1), Words: words, Mentioned: true})
				}
			}
		}
	}
	return out, nil
}

// Calls are the arguments of each call of the program in some lines of shell.
func Calls(text, program string) (out [][]string) {
	for _, line := range strings.Split(strings.ReplaceAll(text, "\\\n", " "), "\n") {
		out = append(out, calls(line, program)...)
	}
	return out
}

// calls are the arguments of each call of the program in a line of shell.
func calls(line, program string) [][]string {
	name := strings.Fields(program)
	var out [][]string
	for _, words := range split(strings.TrimSpace(line)) {
		words = unprompted(words)
		if len(words) <= len(name) || strings.Join(words[:len(name)], " ") != program {
			continue
		}
		if args := words[len(name):]; !strings.HasPrefix(args[0], "…") && !strings.HasPrefix(args[0], "__") {
			out = append(out, args)
		}
	}
	return out
}

// unprompted takes off what stands before the program: a prompt, sudo, ssh to a host, settings
// of the environment.
func unprompted(words []string) []string {
	for len(words) > 0 {
		switch w := words[0]; {
		case w == "$" || w == "#" || w == "sudo":
			words = words[1:]
		case w == "ssh" && len(words) > 1:
			words = words[2:]
		case regexp.MustCompile(`^[A-Z_]+=`).MatchString(w):
			words = words[1:]
		default:
			return words
		}
	}
	return nil
}

// split is as much of a shell as the pages need: quotes, comments, redirections, and the
// simple commands between ; && || and |.
func split(line string) (commands [][]string) {
	var words []string
	var word strings.Builder
	var quote rune
	begun, dropNext := false, false
	endWord := func() {
		if begun && !dropNext {
			words = append(words, word.String())
		}
		if begun {
			dropNext = false
		}
		word.Reset()
		begun = false
	}
	endCommand := func() {
		endWord()
		if len(words) > 0 {
			commands = append(commands, words)
		}
		words, dropNext = nil, false
	}
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, begun = r, true
		case r == ' ' || r == '\t':
			endWord()
		case r == '#' && !begun && len(words) > 0:
			endCommand()
			return commands
		case r == ';' || r == '|' || r == '&':
			endCommand()
		case r == '>':
			endWord()
			dropNext = true
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	endCommand()
	return commands
}
