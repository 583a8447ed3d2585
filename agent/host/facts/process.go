package facts

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// programOf is the file that a process was started from, also when it is gone by now.
func programOf(pid uint32) (string, error) {
	path, err := os.Readlink("/proc/" + strconv.Itoa(int(pid)) + "/exe")
	if err != nil {
		return "", fmt.Errorf("looking at process %d: %w", pid, err)
	}
	return strings.TrimSuffix(path, " (deleted)"), nil
}

// isProgramOf says whether a path still leads to the file that a process runs.
func isProgramOf(path string, pid uint32) bool {
	onDisk, err := os.Stat(path)
	if err != nil {
		return false
	}
	runs, err := os.Stat("/proc/" + strconv.Itoa(int(pid)) + "/exe")
	return err == nil && os.SameFile(onDisk, runs)
}

// flagsOf are the flags of a process, without the values of those that hold secrets.
func flagsOf(pid uint32) ([]string, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(int(pid)) + "/cmdline")
	if err != nil {
		return nil, fmt.Errorf("reading the flags of process %d: %w", pid, err)
	}
	return flagsIn(data), nil
}

// flagsIn takes a command line apart; the first word is the program.
func flagsIn(cmdline []byte) []string {
	args := strings.Split(strings.TrimRight(string(cmdline), "\x00"), "\x00")
	return redact(args[1:])
}

// secretFlags are words in flag names whose values stay on the host.
var secretFlags = []string{"token", "password", "secret", "credential"}

func redact(args []string) []string {
	out := make([]string, 0, len(args))
	hideNext := false
	for _, arg := range args {
		name, value, hasValue := strings.Cut(arg, "=")
		isFlag := strings.HasPrefix(arg, "-")
		switch {
		case hideNext && !isFlag:
			arg = "REDACTED"
		case isFlag && hasValue && isSecret(name) && value != "":
			arg = name + "=REDACTED"
		}
		hideNext = isFlag && !hasValue && isSecret(name)
		out = append(out, arg)
	}
	return out
}

// isSecret spares flags that only name a file or a setting, such as --rotate-… or --…-file.
func isSecret(name string) bool {
	if strings.HasSuffix(name, "-file") || strings.HasSuffix(name, "-dir") || strings.HasSuffix(name, "-config") || strings.HasSuffix(name, "-ttl") {
		return false
	}
	for _, word := range secretFlags {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}
