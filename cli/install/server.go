package install

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
)

// What the API server of a cluster must know for what is installed there.
var (
	oldestServer    = version.MustParseGeneric("1.30.0") // admission policies without webhooks are stable
	oldestDaemonSet = version.MustParseGeneric("1.31.0") // tokens of pods say on which Node, and are bound to it
)

// CheckServer refuses an API server, by its gitVersion, that would take only some of the objects, or take them and not
// hold to them. One whose version cannot be read is not refused: it is somebody's own build.
func CheckServer(gitVersion string, pods bool) error {
	have, err := version.ParseGeneric(gitVersion)
	if err != nil {
		return nil //nolint:nilerr // what it cannot do, it says when the objects are applied
	}
	switch {
	case have.LessThan(oldestServer):
		return fmt.Errorf("the API server is %s, and Refit needs v1.30 or later: the policies that hold agents to their own Machine are ValidatingAdmissionPolicies, which are not stable before; nothing was applied", gitVersion)
	case pods && have.LessThan(oldestDaemonSet):
		return fmt.Errorf("the API server is %s, and agents as pods need v1.31 or later: before, nothing ties the token of a pod to its Node, and any agent could speak for any host; install them as packages (--agent systemd), or upgrade the control plane first; nothing was applied", gitVersion)
	}
	return nil
}
