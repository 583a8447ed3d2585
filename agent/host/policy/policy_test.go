package policy

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/hostpolicy"
)

// host is a root with a policy that is as it should be.
func host(t *testing.T, text string) (p Policy, file string) {
	t.Helper()
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "etc/refit"), 0o755))
	file = filepath.Join(root, hostpolicy.Path)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	return Policy{Root: root, Owner: uint32(os.Geteuid())}, file
}

func TestTheFileIsReadAnewEachTime(t *testing.T) {
	p, file := host(t, "hooks: {allow: [smoke]}\n")
	require.Equal(t, []string{"smoke"}, p.Read().Rules.Hooks.Allow)
	require.NoError(t, os.WriteFile(file, []byte("hooks: {allow: [other]}\n"), 0o644))
	require.Equal(t, []string{"other"}, p.Read().Rules.Hooks.Allow)
	require.NoError(t, os.Remove(file))
	require.Nil(t, p.Read(), "no file is no policy")
	require.NoError(t, os.RemoveAll(filepath.Join(p.Root, "etc/refit")))
	require.Nil(t, p.Read())
}

func TestAFileThatOthersCouldHaveWrittenIsNoPolicy(t *testing.T) {
	const text = "hooks: {}\n"
	for name, tc := range map[string]struct {
		do   func(t *testing.T, p *Policy, file string)
		says string
	}{
		"the group may write it":       {func(t *testing.T, _ *Policy, file string) { require.NoError(t, os.Chmod(file, 0o664)) }, "chmod go-w"},
		"everybody may write it":       {func(t *testing.T, _ *Policy, file string) { require.NoError(t, os.Chmod(file, 0o646)) }, "chmod go-w"},
		"its directory may be written": {func(t *testing.T, _ *Policy, file string) { require.NoError(t, os.Chmod(filepath.Dir(file), 0o775)) }, "chmod go-w"},
		"it is somebody else's":        {func(_ *testing.T, p *Policy, _ string) { p.Owner++ }, "chown"},
		"it is a link": {func(t *testing.T, _ *Policy, file string) {
			require.NoError(t, os.Rename(file, file+".real"))
			require.NoError(t, os.Symlink(file+".real", file))
		}, "links are not followed"},
		"it is a link that leads nowhere": {func(t *testing.T, _ *Policy, file string) {
			require.NoError(t, os.Remove(file))
			require.NoError(t, os.Symlink("/nowhere", file))
		}, "links are not followed"},
		"its directory is a link": {func(t *testing.T, p *Policy, file string) {
			require.NoError(t, os.Rename(filepath.Dir(file), filepath.Join(p.Root, "elsewhere")))
			require.NoError(t, os.Symlink(filepath.Join(p.Root, "elsewhere"), filepath.Dir(file)))
		}, "links are not followed"},
		"it is a directory": {func(t *testing.T, _ *Policy, file string) {
			require.NoError(t, os.Remove(file))
			require.NoError(t, os.Mkdir(file, 0o755))
		}, "plain file"},
		"it is a pipe": {func(t *testing.T, _ *Policy, file string) {
			require.NoError(t, os.Remove(file))
			require.NoError(t, syscall.Mkfifo(file, 0o600))
		}, "plain file"},
		"it is not understood": {func(t *testing.T, _ *Policy, file string) {
			require.NoError(t, os.WriteFile(file, []byte("# a\nhoks: {}\n"), 0o644))
		}, `line 2: there is no field "hoks"`},
		"it is too long": {func(t *testing.T, _ *Policy, file string) {
			require.NoError(t, os.WriteFile(file, make([]byte, hostpolicy.MaxSize+1), 0o644))
		}, "keep it short"},
	} {
		t.Run(name, func(t *testing.T) {
			p, file := host(t, text)
			require.Empty(t, p.Read().Broken)
			tc.do(t, &p, file)
			read := p.Read()
			require.NotNil(t, read)
			assert.Nil(t, read.Rules)
			assert.Contains(t, read.Broken, tc.says)
			assert.Equal(t, hostpolicy.Path, read.Path)
		})
	}
}
