package command

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"unicode/utf8"
)

// tail keeps the last bytes written to it.
type tail struct {
	mu    sync.Mutex
	limit int
	data  []byte
}

func newTail(limit int) *tail {
	if limit <= 0 {
		limit = defaultLimit
	}
	return &tail{limit: limit}
}

// Write never fails: a program is not to end because its output is long.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p...)
	if len(t.data) > 2*t.limit {
		t.data = append([]byte{}, t.data[len(t.data)-t.limit:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.data[max(0, len(t.data)-t.limit):])
}

// lockedWriter lets two streams share one log.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

// Write drops what the log does not take: a full disk is not to end a transaction half way.
func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.w.Write(p)
	return len(p), nil
}

// Tail is the end of a text, cut at a line.
func Tail(text string, limit int) string {
	text = strings.TrimSpace(text)
	if len(text) <= limit {
		return text
	}
	text = text[len(text)-limit:]
	for i := 0; i < utf8.UTFMax && text != "" && !utf8.RuneStart(text[0]); i++ {
		text = text[1:] // the rest of a character that was cut in two
	}
	if cut := strings.IndexByte(text, '\n'); cut >= 0 && cut < len(text)-1 {
		text = text[cut+1:]
	}
	return "… " + text
}

// lookPath finds a program in the fixed PATH; a name with a slash stays as it is.
func lookPath(name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	if path := Find(name); path != "" {
		return path
	}
	return name
}

// Find is the path of an executable in the fixed PATH, or "".
func Find(name string) string {
	for _, dir := range filepath.SplitList(strings.TrimPrefix(baseEnv[0], "PATH=")) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}
