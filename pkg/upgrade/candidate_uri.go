package upgrade

import (
	"fmt"
	"strings"
)

// URI is where the candidate's file is. Its path is escaped for use in a URL only: + is
// legal in a file name and means a space to some servers.
func (c Candidate) URI() string {
	return strings.TrimSuffix(c.Source, "/") + "/" + escapePath(strings.TrimPrefix(c.Path, "./"))
}

// plainInPath are the characters, besides letters and digits, that stand for themselves in the path of a URL.
const plainInPath = "/-._~:@!$&'()*,;="

func escapePath(path string) string {
	var b strings.Builder
	for i := range len(path) {
		if c := path[i]; isLetter(c) || isDigit(c) || strings.IndexByte(plainInPath, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
