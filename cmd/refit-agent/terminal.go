package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/refit-dev/refit/pkg/usage"
)

// width of the terminal that a stream is; 0 for one that is none.
func width(stream any) int {
	file, ok := stream.(*os.File)
	if !ok {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	const usual = 80
	if size.Col == 0 {
		return usual
	}
	return int(size.Col)
}

// colourful says whether a terminal is to have colours (https://no-color.org).
func colourful(width int) bool {
	return width > 0 && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// mayAsk says whether there is a person to ask, before anything is begun.
func mayAsk(stdin any, file string) error {
	if file == "-" {
		return usage.Errorf("the Machine comes from the standard input, so nobody can be asked there: give --yes")
	}
	if width(stdin) == 0 {
		return usage.Errorf("the standard input is no terminal, so nobody can be asked: give --yes")
	}
	return nil
}

// confirmed asks a person; only a plain yes is one.
func confirmed(in io.Reader, out io.Writer, question string) bool {
	_, _ = fmt.Fprint(out, question+" [y/N]: ")
	answer, _ := bufio.NewReader(in).ReadString('\n') // an end of input is no yes
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return true
	}
	return false
}
