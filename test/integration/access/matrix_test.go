package access

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const golden = "testdata/matrix.golden"

// Verdicts, as they stand in the table.
const (
	allowed  = "yes"
	byRole   = "-"
	byPolicy = "policy"
	unknown  = "401"
	ignored  = "ignored"
)

// tooWide gives the hosts all that Refit has and the coordinator the cluster, so that what is refused is refused by a policy.
const tooWide = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: too-wide}
rules:
  - {apiGroups: [refit.dev], resources: ["*"], verbs: ["*"]}
  - {apiGroups: [""], resources: [serviceaccounts/token], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: too-wide}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: too-wide}
subjects:
  - {apiGroup: rbac.authorization.k8s.io, kind: User, name: "system:node:w1"}
  - {apiGroup: rbac.authorization.k8s.io, kind: User, name: "system:node:gone"}
  - {kind: ServiceAccount, namespace: refit, name: refit-machine-w1}
  - {kind: ServiceAccount, namespace: refit, name: refit-machine-gone}
  - {kind: ServiceAccount, namespace: refit, name: refit-machine-e1}
  - {kind: ServiceAccount, namespace: refit-agent, name: refit-agent}
  - {kind: ServiceAccount, namespace: refit-system, name: refit-coordinator}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: too-wide-coordinator}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, namespace: refit-system, name: refit-coordinator}]
`

// matrix is what each action (row) came to for each identity (column).
type matrix map[string]map[string]string

func TestOnlyWhatTheContractAllowsSucceeds(t *testing.T) {
	kube, err := kubernetes.NewForConfig(server.Admin())
	require.NoError(t, err)
	apply(t, fixture)
	letCoordinatorWork(t, kube)
	all := identities(t, kube)
	awaitInForce(t, all)
	t.Run("agents renew their tokens, and nobody else's", func(t *testing.T) { agentsRenewTheirTokens(t, all) })
	t.Run("a token is renewed when the API server is back", func(t *testing.T) { renewalOutlastsAnOutage(t, all) })
	awaitInForce(t, all)

	var out strings.Builder
	for _, id := range all {
		fmt.Fprintf(&out, "%-9s%s\n", id.name, id.what)
	}
	fmt.Fprintf(&out, "\n%-9sno role allows it\n%-9san admission policy refuses it\n%-9sthe credential counts no more\n%-9sthe request is taken, and what it asks for is left out\n", byRole, byPolicy, unknown, ignored)

	shipped := ask(t, all, "s")
	agentsHaveTheirOwn(t, shipped)
	fmt.Fprintf(&out, "\nUnder the Roles as shipped\n%s", table(all, shipped))

	apply(t, tooWide)
	require.True(t, eventually(func() bool {
		// Of each subject; roles and bindings come into force one by one.
		if _, err := byName(all, "coord").client.Resource(resources["secrets"]).Namespace(namespace).List(t.Context(), metav1.ListOptions{}); err != nil {
			return false
		}
		_, err := byName(all, "pod").client.Resource(machines).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
		return err == nil
	}))
	wide := ask(t, all, "w")
	policiesHold(t, wide)
	fmt.Fprintf(&out, "\nUnder a role that is too wide, by the admission policies alone\n%s", table(all, wide))

	t.Log("\n" + out.String())
	compare(t, out.String())
}

// ask sends every action as every identity, as a dry run and then for real: a dry run is no way round.
func ask(t *testing.T, all []identity, round string) matrix {
	t.Helper()
	m := matrix{}
	for n, a := range actions() {
		m[a.name] = map[string]string{}
		for i, id := range all {
			r := request{ctx: t.Context(), client: id.client, own: id.own, dryRun: []string{metav1.DryRunAll}, unique: fmt.Sprintf("%s%dx%d", round, n, i)}
			dry := verdict(a.do(r))
			m[a.name][id.name] = dry
			if !a.writes || id.name == "admin" || a.once && dry == allowed {
				continue
			}
			r.dryRun = nil
			assert.Equal(t, dry, verdict(a.do(r)), "%s as %s: a dry run and the deed", a.name, id.name)
		}
		if want := map[bool]string{true: byPolicy, false: allowed}[strings.HasPrefix(a.name, "pods: create")]; m[a.name]["admin"] != ignored {
			assert.Equal(t, want, m[a.name]["admin"], "%s: the request is well formed", a.name)
		}
	}
	return m
}

func verdict(err error) string {
	switch {
	case err == nil:
		return allowed
	case errors.Is(err, errIgnored):
		return ignored
	case apierrors.IsUnauthorized(err):
		return unknown
	case strings.Contains(err.Error(), "ValidatingAdmissionPolicy"):
		return byPolicy
	case apierrors.IsForbidden(err):
		return byRole
	}
	return err.Error()
}

// agentsHaveTheirOwn holds whatever the golden file says: an agent does what it is for, and nothing else.
func agentsHaveTheirOwn(t *testing.T, m matrix) {
	t.Helper()
	for _, a := range actions() {
		for _, agent := range []string{"kubelet", "token", "bound"} {
			got, renewal := m[a.name][agent], strings.HasPrefix(a.name, "serviceaccounts/token: own")
			switch {
			case a.own && !renewal:
				assert.Equal(t, allowed, got, "%s as %s", a.name, agent)
			case renewal:
				bound := strings.HasSuffix(a.name, "bound to its Node")
				assert.Equal(t, agent == "token" || agent == "bound" && bound, got == allowed, "%s as %s", a.name, agent)
			default:
				assert.NotEqual(t, allowed, got, "%s as %s", a.name, agent)
			}
		}
		bound := strings.HasSuffix(a.name, "bound to its Node") // it has none
		assert.Equal(t, (a.own || a.alone) && !bound, m[a.name]["alone"] == allowed, "%s as the agent of a host with etcd alone", a.name)
		for _, nobody := range []string{"bound-", "pod?", "nobody", "anon"} {
			assert.NotEqual(t, allowed, m[a.name][nobody], "%s as %s", a.name, nobody)
		}
		assert.Equal(t, strings.HasSuffix(a.name, "own, bound to its Node"), m[a.name]["pod"] == allowed, "%s as the pod", a.name)
	}
}

// policiesHold: with a role for everything, nobody who speaks for a host writes more than its own status.
func policiesHold(t *testing.T, m matrix) {
	t.Helper()
	for _, a := range actions() {
		refit := strings.HasPrefix(a.name, "machine") || strings.HasPrefix(a.name, "ledger")
		if !a.writes || !refit && !strings.HasPrefix(a.name, "serviceaccounts/token") {
			continue
		}
		for _, id := range []string{"kubelet", "token", "bound", "alone", "pod", "pod?"} {
			byStatus := strings.HasPrefix(a.name, "machines/status: update own, an agent's field") // the same by another verb
			if got := m[a.name][id]; got == allowed {
				assert.True(t, a.own || byStatus, "%s as %s", a.name, id)
				assert.False(t, strings.HasPrefix(id, "pod") && refit, "%s as %s", a.name, id)
			}
		}
		if strings.HasPrefix(a.name, "serviceaccounts/token") {
			assert.Equal(t, byPolicy, m[a.name]["coord"], a.name)
		}
	}
}

func table(all []identity, m matrix) string {
	var out strings.Builder
	line := func(first string, cell func(identity) string) {
		fmt.Fprintf(&out, "%-54s", first)
		for _, id := range all {
			fmt.Fprintf(&out, " %-8s", cell(id))
		}
		out.WriteString("\n")
	}
	line("", func(id identity) string { return id.name })
	for _, a := range actions() {
		line(a.name, func(id identity) string { return m[a.name][id.name] })
	}
	lines := strings.Split(out.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func compare(t *testing.T, got string) {
	t.Helper()
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, os.MkdirAll(filepath.Dir(golden), 0o755))
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), got, "what is allowed has changed: read the difference, then UPDATE_GOLDEN=1 go test ./test/integration/access")
}
