package apt

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/agent/host/packagefile"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// transaction is the argument list of the one apt-get run that makes the changes. No
// source is configured for it, so that nothing but the given files can be installed.
func (a *Apt) transaction(ctx context.Context, changes []upgrade.PackageChange, dir string) ([]string, error) {
	args := []string{
		"-y", "-q", "--no-install-recommends", "--no-remove",
		"-o", "Dir::State::lists=" + a.state("apt/none"),
		"-o", "Dir::Etc::sourcelist=/dev/null",
		"-o", "Dir::Etc::sourceparts=/dev/null",
		"-o", "Dpkg::Options::=--force-confdef",
		"-o", "Dpkg::Options::=--force-confold",
		"-o", "DPkg::Lock::Timeout=60",
		"-o", "APT::Get::AutomaticRemove=false",
	}
	var operands []string
	for _, c := range changes {
		if c.To == "" {
			args = slices.DeleteFunc(args, func(s string) bool { return s == "--no-remove" })
			operands = append(operands, c.Name+"-")
			continue
		}
		operands = append(operands, filepath.Join(dir, c.File))
		if c.From == "" {
			continue
		}
		down, err := a.less(ctx, c.To, c.From)
		if err != nil {
			return nil, err
		}
		if down && !slices.Contains(args, "--allow-downgrades") {
			args = append(args, "--allow-downgrades")
		}
	}
	return append(append(args, "install", "--"), operands...), nil
}

var (
	simulatedInstall = regexp.MustCompile(`^Inst (\S+?)(?::\S+)?(?: \[[^\]]*\])? \((\S+) `)
	simulatedRemove  = regexp.MustCompile(`^(?:Remv|Purg) (\S+?)(?::\S+)?(?:\s|$)`)
	simulatedAny     = regexp.MustCompile(`^(?:Inst|Remv|Purg)(?:\s|$)`)
)

// simulate refuses a transaction that apt cannot solve, or that would do more or
// less than was asked for. While packages are staged they may still be on hold: taking
// them off is a step of its own, later.
func (a *Apt) simulate(ctx context.Context, changes []upgrade.PackageChange, dir string, mayBeHeld bool) error {
	args, err := a.transaction(ctx, changes, dir)
	if err != nil {
		return err
	}
	// What it would remove is to be named below, not only refused by apt.
	args = slices.DeleteFunc(args, func(s string) bool { return s == "--no-remove" })
	options := []string{"-s"}
	if mayBeHeld {
		options = append(options, "--allow-change-held-packages")
	}
	result, err := a.run(ctx, queryTimeout, a.apt("apt-get", append(options, args...)...))
	if err != nil && ctx.Err() == nil {
		return refuse(upgrade.FindingTransactionRefused, "apt cannot do it: %s", solverText(result))
	}
	if err != nil {
		return fmt.Errorf("simulating the transaction: %w", err)
	}
	done, err := a.Query(ctx, packagefile.Names(changes))
	if err != nil {
		return err
	}
	return compare(result.Stdout, changes, done)
}

func solverText(r command.Result) string {
	text := r.Output()
	if cut := strings.Index(text, "The following packages have unmet dependencies"); cut >= 0 {
		text = text[cut:]
	}
	return command.Tail(strings.Join(strings.Fields(text), " "), 1200)
}

// compare holds what apt would do against what was asked for.
func compare(output string, changes []upgrade.PackageChange, now []upgrade.InstalledPackage) error {
	wanted := map[string]string{}
	for _, c := range changes {
		wanted[c.Name] = c.To
	}
	seen := map[string]bool{}
	for line := range strings.Lines(output) {
		install, remove := simulatedInstall.FindStringSubmatch(line), simulatedRemove.FindStringSubmatch(line)
		if install == nil && remove == nil && simulatedAny.MatchString(line) {
			return refuse(upgrade.FindingTransactionAddsPackage, "apt would do something that cannot be read: %q; nothing is done beyond what was asked for", strings.TrimSpace(line))
		}
		if install != nil {
			if to, ok := wanted[install[1]]; !ok || to != install[2] {
				return refuse(upgrade.FindingTransactionAddsPackage, "apt would also install %s %s, which is not part of the plan; nothing is done beyond what was asked for", install[1], install[2])
			}
			seen[install[1]] = true
		}
		if remove != nil {
			if to, ok := wanted[remove[1]]; !ok || to != "" {
				return refuse(upgrade.FindingTransactionWouldRemove, "apt would remove %s, which is not part of the plan", remove[1])
			}
			seen[remove[1]] = true
		}
	}
	for _, c := range changes {
		if !seen[c.Name] && !packagefile.Done(c, now) {
			return refuse(upgrade.FindingTransactionLeavesAsItIs, "apt would leave %s as it is instead of %s; is it kept back or on hold?\n%s", c.Name, describeTo(c), command.Tail(output, 500))
		}
	}
	return nil
}

func describeTo(c upgrade.PackageChange) string {
	if c.To == "" {
		return "removing it"
	}
	return "installing " + c.To
}
