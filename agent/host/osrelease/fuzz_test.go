package osrelease

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func FuzzOSRelease(f *testing.F) {
	f.Add("PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\nVERSION_ID=\"12\"\n# comment=1\nID_LIKE='a b'\n", "it's \"$HOME\" `x` \\")
	f.Add("ID=\nNAME\n=x\n\"=\"\n", "")
	f.Add("ID=\"debian\r\nVERSION_ID='12\"\n", "x")
	f.Fuzz(func(t *testing.T, content, value string) {
		fields := parse(content)
		require.LessOrEqual(t, len(fields), 1+strings.Count(content, "\n"))
		for name, value := range fields {
			require.NotContains(t, name, "=")
			require.NotContains(t, name+value, "\n")
		}
		if strings.ContainsAny(value, "\n") {
			return
		}
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "`", "\\`", "$", `\$`).Replace(value) + `"`
		require.Equal(t, value, parse(content + "\nREFIT_TEST=" + quoted + "\n")["REFIT_TEST"])
	})
}
