// Package kubeadm runs the host's kubeadm. Its exit code is only a hint: whether the
// upgrade came about is judged elsewhere, by what runs.
package kubeadm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/agent/host/controlplane"
	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// runTimeout bounds one kubeadm run: it waits minutes for each static pod to change.
const runTimeout = 40 * time.Minute

// Kubeadm is the kubeadm program of this host.
type Kubeadm struct {
	Root    string
	State   string // /var/lib/refit
	Program string // looked up in the fixed PATH
	Runner  command.Runner
	// LogName of the file that keeps the whole output, in State/log; the operation's id where there is one.
	LogName string
	Timeout time.Duration
	// Proxy is the image of the kube-proxy that runs here, "" when none does; unset: none.
	Proxy func(ctx context.Context) (string, error)
}

// New returns the kubeadm of the host under root.
func New(root string) *Kubeadm {
	return &Kubeadm{Root: root, State: "/var/lib/refit", Program: "kubeadm", Runner: command.Exec{}, LogName: "kubeadm", Timeout: runTimeout}
}

// Failure is a kubeadm run that ended with an error.
type Failure struct {
	Command string   // what was run
	Checks  []string // ids of the preflight checks that failed, in kubeadm's words
	Tail    string   // the last output
	Log     string   // where all of it is
	cause   error
}

// Error implements error: why first, then with what and where to read on.
func (f *Failure) Error() string {
	what := f.Tail
	if len(f.Checks) > 0 {
		what = "preflight checks " + strings.Join(f.Checks, ", ") + " failed (each can be named in spec.kubeadm.ignorePreflightErrors): " + f.Tail
	}
	return fmt.Sprintf("%s; command: %s; whole output in %s", what, f.Command, f.Log)
}

// Unwrap returns what ended the run.
func (f *Failure) Unwrap() error { return f.cause }

// Upgrade runs kubeadm of the target's minor once: `upgrade apply` on the first
// control-plane host, `upgrade node` on all others and on workers.
func (k *Kubeadm) Upgrade(ctx context.Context, u upgrade.KubeadmUpgrade) error {
	if err := check(u); err != nil {
		return err
	}
	own, err := k.Version(ctx)
	if err != nil {
		return err
	}
	if err := matches(own, u.Version); err != nil {
		return err
	}
	args, err := k.arguments(own, u)
	if err != nil {
		return err
	}
	if err := k.begun(u); err != nil {
		return err
	}
	if err := k.run(ctx, args); err != nil {
		return err
	}
	return k.ended(u)
}

// RenewCertificates renews every certificate that kubeadm manages on this host. One whose
// CA's key is not here is skipped without an error: whoever calls looks at the dates.
func (k *Kubeadm) RenewCertificates(ctx context.Context) error {
	return k.run(ctx, []string{"certs", "renew", "all"})
}

// Version of the kubeadm program on disk.
func (k *Kubeadm) Version(ctx context.Context) (string, error) {
	result, err := k.Runner.Run(ctx, command.Command{Argv: []string{k.Program, "version", "-o", "short"}, Timeout: time.Minute})
	if err != nil {
		return "", fmt.Errorf("asking kubeadm for its version: %w", err)
	}
	return strings.TrimSpace(result.Stdout), nil
}

var (
	validVersion = regexp.MustCompile(`^v1\.[0-9]{1,3}\.[0-9]{1,3}([-+][0-9A-Za-z.+_-]{1,48})?$`)
	validCheck   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9./_-]{0,100}$`)
)

// check validates again what admission should have: a plan may come from a file.
func check(u upgrade.KubeadmUpgrade) error {
	if !validVersion.MatchString(u.Version) {
		return refuse("VersionInvalid", "kubeadm version %q: want a version such as v1.37.2", u.Version)
	}
	if u.Role != v1alpha1.KubeadmFirst && u.Role != v1alpha1.KubeadmOther {
		return refuse("RoleInvalid", "kubeadm role %q: want First or Other", u.Role)
	}
	for _, id := range u.IgnorePreflightErrors {
		if strings.EqualFold(id, "all") || !validCheck.MatchString(id) {
			return refuse("PreflightIDInvalid", "preflight error %q: want the id of one check, such as CreateJob; all of them at once are never ignored", id)
		}
	}
	for _, phase := range u.SkipPhases {
		if !upgrade.SkippablePhase(phase) {
			return refuse("PhaseInvalid", "kubeadm's phase %q: only addon/coredns and addon/kube-proxy can be left out", phase)
		}
	}
	return nil
}

// matches holds kubeadm's own rule: the minor that does the work is the target's, and no patch older.
func matches(own, target string) error {
	have, okHave := upgrade.ParseKubernetes(own)
	want, okWant := upgrade.ParseKubernetes(target)
	if !okHave || !okWant {
		return refuse("VersionUnknown", "kubeadm on this host is %q and the target %q: one of them is no version", own, target)
	}
	if have.Minor() != want.Minor() || have.LessThan(want) {
		return refuse("KubeadmMismatch", "kubeadm on this host is %s; an upgrade to %s needs kubeadm of the same minor and at least that patch", own, target)
	}
	return nil
}

// arguments of the run. kubeadm takes its timeouts only from a file, which it
// understands since v1.31; older ones get flags.
func (k *Kubeadm) arguments(own string, u upgrade.KubeadmUpgrade) ([]string, error) {
	args := []string{"upgrade", "node"}
	if u.Role == v1alpha1.KubeadmFirst {
		args = []string{"upgrade", "apply", u.Version, "--yes"}
	}
	if readsConfiguration(own) {
		path, err := k.writeConfiguration(u)
		if err != nil {
			return nil, err
		}
		return append(args, "--config="+path), nil
	}
	if len(u.IgnorePreflightErrors) > 0 {
		args = append(args, "--ignore-preflight-errors="+strings.Join(u.IgnorePreflightErrors, ","))
	}
	return args, nil
}

func (k *Kubeadm) run(ctx context.Context, args []string) error {
	log, path, err := k.openLog()
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // what it holds is information only
	what := k.Program + " " + strings.Join(args, " ")
	_, _ = fmt.Fprintf(log, "\n--- %s %s\n", time.Now().UTC().Format(time.RFC3339), what)
	proxies, err := controlplane.New(k.Root).ProxyEnvironment()
	if err != nil {
		return fmt.Errorf("looking for the proxies that kubeadm is to keep: %w", err)
	}
	logr.FromContextOrDiscard(ctx).Info("Running kubeadm", "arguments", args, "log", path)
	result, err := k.Runner.Run(ctx, command.Command{Argv: append([]string{k.Program}, args...), Env: proxies, Timeout: k.Timeout, Log: log})
	if err == nil {
		return nil
	}
	var exit *command.Error
	if !errors.As(err, &exit) {
		return fmt.Errorf("running kubeadm: %w", err)
	}
	return &Failure{Command: what, Checks: failedChecks(result.Output()), Tail: reason(result.Output()), Log: path, cause: err}
}

func (k *Kubeadm) openLog() (*os.File, string, error) {
	dir := filepath.Join(k.Root, k.State, "log")
	if err := files.PrivateDir(dir); err != nil {
		return nil, "", err //nolint:wrapcheck // says what it was doing
	}
	path := filepath.Join(dir, filepath.Base(k.LogName)+".log")
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, "", fmt.Errorf("opening kubeadm's log: %w", err)
	}
	return log, path, nil
}

var colour = regexp.MustCompile("\x1b\\[[0-9;]*m")

// maxReason keeps the rest of a message, such as where the log is, within its bound.
const maxReason = 400

var (
	// verdict is a line in which kubeadm says why it gives up.
	verdict = regexp.MustCompile(`^\s*(\[ERROR |error: )|\bFATAL\b`)
	// advice is what kubeadm says after every failure.
	advice = regexp.MustCompile(`^\[preflight\] (Some fatal errors occurred|If you know what you are doing)|^To see the stack trace of this error|^error: error execution phase preflight: preflight checks failed`)
)

// reason is kubeadm's own verdict, from its first line on; without one, the end of the output.
func reason(output string) string {
	var kept []string
	first := -1
	for line := range strings.Lines(colour.ReplaceAllString(output, "")) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" || advice.MatchString(line) {
			continue
		}
		if first < 0 && verdict.MatchString(line) {
			first = len(kept)
		}
		kept = append(kept, line)
	}
	if first < 0 {
		return command.Tail(strings.Join(kept, "\n"), maxReason)
	}
	text := strings.TrimSpace(strings.Join(kept[first:], "\n"))
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + " …"
	}
	return text
}

var failedCheck = regexp.MustCompile(`\[ERROR ([A-Za-z0-9._/-]+)\]`)

// failedChecks are the ids of failed preflight checks; a WARNING is none.
func failedChecks(output string) []string {
	var ids []string
	for _, m := range failedCheck.FindAllStringSubmatch(output, -1) {
		if !slices.Contains(ids, m[1]) {
			ids = append(ids, m[1])
		}
	}
	return ids
}

func refuse(reason, format string, args ...any) *upgrade.Blocked {
	return &upgrade.Blocked{Reason: reason, Message: fmt.Sprintf(format, args...), Terminal: true}
}
