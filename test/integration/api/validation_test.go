package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	kubernetesVersion = "must be a Kubernetes version such as v1.37.2: a leading v, then major.minor.patch, optionally a vendor or pre-release suffix of letters, digits, dots and dashes"
	packageName       = "must be a plain package name: letters, digits, dots, dashes, plus and underscore, not starting or ending with a dash"
	packageVersion    = "must be a package version such as 3.0.15-1~deb12u1: no spaces, no quotes, not ending with + or -"
	percentage        = "must be a count of 0 or more, or a percentage from 0% to 100%"
	percentageFrom1   = "must be a count of 1 or more, or a percentage from 1% to 100%"
	schedule          = "must be a cron schedule of five fields (minute 0-59, hour 0-23, day 1-31, month 1-12, weekday 0-7), such as 0 22 * * 1-5"
	noSurge           = "maxUnavailable 0 needs a maxSurge above 0 and a standby machine: otherwise no machine could ever be upgraded"
)

func TestMachinesThatCannotBeMeantAreRefusedWithWhatToDo(t *testing.T) {
	worker := "{roles: [Worker], %s}"
	for name, tc := range map[string]struct{ spec, message string }{
		"controlPlane on a worker":        {fmt.Sprintf(worker, "versions: {controlPlane: v1.37.2}"), "spec: Invalid value: versions.controlPlane is only for machines with role ControlPlane: remove it, or add ControlPlane to roles"},
		"etcd without the role":           {"{roles: [ControlPlane], versions: {etcd: 3.6.4}}", "versions.etcd is only for machines with role Etcd (a stacked etcd moves with versions.controlPlane): remove it, or add Etcd to roles"},
		"unknown role":                    {"{roles: [Master]}", `spec.roles[0]: Unsupported value: "Master": supported values: "ControlPlane", "Etcd", "Worker"`},
		"no role":                         {"{roles: []}", "spec.roles: Invalid value: 0: spec.roles in body should have at least 1 items"},
		"roles missing":                   {"{versions: {kubelet: v1.37.2}}", "spec.roles: Required value"},
		"the same role twice":             {"{roles: [Worker, Worker]}", `spec.roles[1]: Duplicate value: "Worker"`},
		"version with shell characters":   {fmt.Sprintf(worker, `versions: {kubelet: "v1.30.4; rm -rf /"}`), `spec.versions.kubelet: Invalid value: "v1.30.4; rm -rf /": ` + kubernetesVersion},
		"version with a newline":          {fmt.Sprintf(worker, `versions: {kubelet: "v1.30.4\nv1.30.5"}`), kubernetesVersion},
		"version with a trailing newline": {fmt.Sprintf(worker, `versions: {kubelet: "v1.30.4\n"}`), kubernetesVersion},
		"version without v":               {fmt.Sprintf(worker, `versions: {kubelet: "1.37.2"}`), kubernetesVersion},
		"minor only":                      {fmt.Sprintf(worker, `versions: {kubelet: "v1.37"}`), kubernetesVersion},
		"package revision as version":     {fmt.Sprintf(worker, `versions: {kubelet: "v1.37.2-"}`), kubernetesVersion},
		"runtime version with a space":    {fmt.Sprintf(worker, `versions: {containerRuntime: {name: containerd, version: "1.7.28 x"}}`), `spec.versions.containerRuntime.version: Invalid value: "1.7.28 x": must be a release version such as 1.7.28`},
		"unknown runtime":                 {fmt.Sprintf(worker, `versions: {containerRuntime: {name: docker}}`), `spec.versions.containerRuntime.name: Unsupported value: "docker": supported values: "containerd", "cri-o"`},
		"package name is an option":       {fmt.Sprintf(worker, `os: {packages: [{name: "--allow-downgrades"}]}`), `spec.os.packages[0].name: Invalid value: "--allow-downgrades": ` + packageName},
		"package name with arguments":     {fmt.Sprintf(worker, `os: {packages: [{name: "kubelet --allow-downgrades"}]}`), packageName},
		"package name is a path":          {fmt.Sprintf(worker, `os: {packages: [{name: "../../x"}]}`), packageName},
		"package name orders a removal":   {fmt.Sprintf(worker, `os: {packages: [{name: "openssl-"}]}`), packageName},
		"package name is a pattern":       {fmt.Sprintf(worker, `os: {packages: [{name: "open*"}]}`), packageName},
		"package version with a space":    {fmt.Sprintf(worker, `os: {packages: [{name: openssl, version: "3.0 || true"}]}`), `spec.os.packages[0].version: Invalid value: "3.0 || true": ` + packageVersion},
		"package version ends with plus":  {fmt.Sprintf(worker, `os: {packages: [{name: openssl, version: "3.0+"}]}`), packageVersion},
		"Absent with a version":           {fmt.Sprintf(worker, `os: {packages: [{name: telnet, state: Absent, version: "1"}]}`), "a package with state Absent has no version: remove one of the two"},
		"the same package twice":          {fmt.Sprintf(worker, `os: {packages: [{name: telnet}, {name: telnet, state: Absent}]}`), `spec.os.packages[1]: Duplicate value: {"name":"telnet"}`},
		"unknown package state":           {fmt.Sprintf(worker, `os: {packages: [{name: telnet, state: Latest}]}`), `Unsupported value: "Latest": supported values: "Present", "Absent"`},
		"all preflight errors ignored":    {fmt.Sprintf(worker, `kubeadm: {ignorePreflightErrors: [all]}`), `spec.kubeadm.ignorePreflightErrors[0]: Invalid value: "all": must be the id of one kubeadm preflight check, such as CreateJob; all is refused: name each check`},
		"ALL preflight errors ignored":    {fmt.Sprintf(worker, `kubeadm: {ignorePreflightErrors: [Swap, ALL]}`), "all is refused: name each check"},
		"source with credentials":         {fmt.Sprintf(worker, `packageSources: [{name: k, uri: "https://u:p@mirror/", signedBy: k}]`), "must be an http or https URL without user, query or spaces; {minor} stands for the minor of the hop"},
		"source from a file":              {fmt.Sprintf(worker, `packageSources: [{name: k, uri: "file:///tmp", signedBy: k}]`), "must be an http or https URL"},
		"source without a key":            {fmt.Sprintf(worker, `packageSources: [{name: k, uri: "https://mirror/"}]`), "spec.packageSources[0].signedBy: Required value"},
		"source key is a path":            {fmt.Sprintf(worker, `packageSources: [{name: k, uri: "https://mirror/", signedBy: "../x"}]`), "must be the bare name of a keyring on the host, such as refit-kubernetes"},
		"suite with a space":              {fmt.Sprintf(worker, `packageSources: [{name: k, uri: "https://mirror/", signedBy: k, suites: ["a b"]}]`), "must be a suite or component name such as bookworm, or / for a flat repository"},
		"hook is a path":                  {fmt.Sprintf(worker, `hooks: {preApply: ["../../bin/sh"]}`), "must be the bare name of a file in /etc/refit/hooks.d: letters, digits, dashes, underscores"},
		"a timeout in words":              {fmt.Sprintf(worker, `drain: {timeout: "ten minutes"}`), `spec.drain.timeout: Invalid value: "ten minutes": must be a duration longer than 0s, such as 30m or 1h30m`},
		"a timeout of nothing":            {fmt.Sprintf(worker, `drain: {timeout: 0m0s}`), "must be a duration longer than 0s"},
		"a negative timeout":              {fmt.Sprintf(worker, `drain: {timeout: -5m}`), "must be a duration longer than 0s"},
		"a timeout of a number":           {fmt.Sprintf(worker, `drain: {timeout: "30"}`), "must be a duration longer than 0s"},
		"a timeout no clock can hold":     {fmt.Sprintf(worker, `drain: {timeout: 9999999h}`), "must be a duration longer than 0s"},
		"a wait in days":                  {fmt.Sprintf(worker, `drain: {skipWaitForDeleteTimeout: 1d}`), "must be a duration such as 30s, 5m or 1h30m"},
		"a renewal on a worker":           {fmt.Sprintf(worker, `kubeadm: {renewCertificatesBefore: 720h}`), "kubeadm.renewCertificatesBefore is only for machines with role ControlPlane"},
		"a renewal of ever":               {`{roles: [ControlPlane], kubeadm: {renewCertificatesBefore: 8760h}}`, "must be longer than 0s and at most 4320h"},
		"a renewal of never":              {`{roles: [ControlPlane], kubeadm: {renewCertificatesBefore: 0s}}`, "must be longer than 0s and at most 4320h"},
		"a renewal in days":               {`{roles: [ControlPlane], kubeadm: {renewCertificatesBefore: 30d}}`, "must be longer than 0s and at most 4320h"},
		"unknown drain policy":            {fmt.Sprintf(worker, `drain: {onTimeout: Kill}`), `Unsupported value: "Kill": supported values: "Fail", "Proceed", "Delete"`},
		"a field that does not exist":     {fmt.Sprintf(worker, `versions: {kublet: v1.37.2}`), `unknown field "spec.versions.kublet"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := create(t, object(t, "Machine", "w1", tc.spec))
			requireRefused(t, err, tc.message)
		})
	}
}

func TestMachineDeploymentsThatCannotBeMeantAreRefusedWithWhatToDo(t *testing.T) {
	rolling := "{selector: {}, template: {}, strategy: {rollingUpdate: {%s}}}"
	for name, tc := range map[string]struct{ spec, message string }{
		"maxUnavailable 0 without surge":     {fmt.Sprintf(rolling, "maxUnavailable: 0"), noSurge},
		"maxUnavailable 0 with surge 0":      {fmt.Sprintf(rolling, "maxUnavailable: 0, maxSurge: 0"), noSurge},
		"maxUnavailable 0 with surge 0%":     {fmt.Sprintf(rolling, `maxUnavailable: 0, maxSurge: "0%"`), noSurge},
		"negative maxUnavailable":            {fmt.Sprintf(rolling, "maxUnavailable: -1"), percentage},
		"percentage over 100":                {fmt.Sprintf(rolling, `maxUnavailable: "101%"`), percentage},
		"percentage without sign":            {fmt.Sprintf(rolling, `maxUnavailable: "10"`), percentage},
		"maxInFlight 0":                      {fmt.Sprintf(rolling, "maxInFlight: 0"), percentageFrom1},
		"maxInFlight 0%":                     {fmt.Sprintf(rolling, `maxInFlight: "0%"`), percentageFrom1},
		"failureThreshold 0":                 {fmt.Sprintf(rolling, "failureThreshold: 0"), percentageFrom1},
		"a count no machine has numbers for": {fmt.Sprintf(rolling, "maxUnavailable: 99999999999"), percentage},
		"a soak that is no time":             {fmt.Sprintf(rolling, "soak: 5x"), `spec.strategy.rollingUpdate.soak: Invalid value: "5x": must be a duration such as 30s, 5m or 1h30m`},
		"a deadline in words":                {`{selector: {}, template: {}, progressDeadline: "1 hour"}`, "spec.progressDeadline: Invalid value: \"1 hour\": must be a duration longer than 0s, such as 30m or 1h30m"},
		"a timeout in the template":          {`{selector: {}, template: {spec: {drain: {timeout: soon}}}}`, "must be a duration longer than 0s"},
		"window that is open for a word":     {fmt.Sprintf(rolling, `windows: [{schedule: "0 1 * * *", duration: long}]`), "spec.strategy.rollingUpdate.windows[0].duration: Invalid value"},
		"window at 25 o'clock":               {fmt.Sprintf(rolling, `windows: [{schedule: "0 25 * * *", duration: 1h}]`), schedule},
		"window at minute 60":                {fmt.Sprintf(rolling, `windows: [{schedule: "60 1 * * *", duration: 1h}]`), schedule},
		"window on the 32nd":                 {fmt.Sprintf(rolling, `windows: [{schedule: "0 1 32 * *", duration: 1h}]`), schedule},
		"window in month 13":                 {fmt.Sprintf(rolling, `windows: [{schedule: "0 1 * 13 *", duration: 1h}]`), schedule},
		"window with four fields":            {fmt.Sprintf(rolling, `windows: [{schedule: "0 1 * *", duration: 1h}]`), schedule},
		"window of no length":                {fmt.Sprintf(rolling, `windows: [{schedule: "0 1 * * *", duration: 0s}]`), "must be longer than 0s and at most 168h"},
		"window of two weeks":                {fmt.Sprintf(rolling, `windows: [{schedule: "0 1 * * *", duration: 336h}]`), "must be longer than 0s and at most 168h"},
		"window in no zone":                  {fmt.Sprintf(rolling, `windows: [{schedule: "0 1 * * *", duration: 1h, timeZone: "../etc/passwd"}]`), "must be an IANA time zone such as Europe/Berlin"},
		"check with both":                    {fmt.Sprintf(rolling, `checks: [{name: a, cel: "true", prometheus: {url: "http://p", query: up}}]`), "a check has exactly one of cel and prometheus"},
		"check with neither":                 {fmt.Sprintf(rolling, `checks: [{name: a}]`), "a check has exactly one of cel and prometheus"},
		"prometheus with credentials":        {fmt.Sprintf(rolling, `checks: [{name: a, prometheus: {url: "http://u:p@p", query: up}}]`), "must be an http or https URL without user or query"},
		"no canary":                          {fmt.Sprintf(rolling, "canary: {count: 0}"), "should be greater than or equal to 1"},
		"negative replicas":                  {"{selector: {}, template: {}, replicas: -1}", "spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0"},
		"unknown strategy":                   {"{selector: {}, template: {}, strategy: {type: Recreate}}", `Unsupported value: "Recreate": supported values: "RollingUpdate", "Manual"`},
		"no selector":                        {"{template: {}}", "spec.selector: Required value"},
		"a bad version in the template":      {`{selector: {}, template: {spec: {versions: {kubelet: "1.37"}}}}`, `spec.template.spec.versions.kubelet: Invalid value: "1.37": ` + kubernetesVersion},
		"roles in the template":              {`{selector: {}, template: {spec: {roles: [Worker]}}}`, `unknown field "spec.template.spec.roles"`},
		"everything ignored in a template":   {`{selector: {}, template: {spec: {kubeadm: {ignorePreflightErrors: [all]}}}}`, "all is refused: name each check"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := create(t, object(t, "MachineDeployment", "pool", tc.spec))
			requireRefused(t, err, tc.message)
		})
	}
}

func TestOtherKindsThatCannotBeMeantAreRefused(t *testing.T) {
	oneOf := "a budget has exactly one of maxUnavailable and minAvailable"
	for name, tc := range map[string]struct{ kind, name, spec, message string }{
		"budget with both":          {"MachineDisruptionBudget", "b", "{selector: {}, maxUnavailable: 1, minAvailable: 1}", oneOf},
		"budget with neither":       {"MachineDisruptionBudget", "b", "{selector: {}}", oneOf},
		"budget over 100 percent":   {"MachineDisruptionBudget", "b", `{selector: {}, minAvailable: "150%"}`, percentage},
		"ledger of another name":    {"Ledger", "other", "{epoch: 1}", "the ledger of a namespace is named refit"},
		"slot of an unknown state":  {"Ledger", "refit", "{slots: [{machine: w1, machineUID: u, assignmentID: a, grantID: g, planHash: h, disruption: Drain, state: Lost, reservedTime: '2026-01-01T00:00:00Z'}]}", `Unsupported value: "Lost"`},
		"two slots for one machine": {"Ledger", "refit", "{slots: [" + slot + ", " + slot + "]}", `spec.slots[1]: Duplicate value: {"machine":"w1"}`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := create(t, object(t, tc.kind, tc.name, tc.spec))
			requireRefused(t, err, tc.message)
		})
	}
}

const slot = "{machine: w1, machineUID: u, assignmentID: a, grantID: g, planHash: h, disruption: Drain, state: Granted, reservedTime: '2026-01-01T00:00:00Z'}"

func requireRefused(t *testing.T, err error, message string) {
	t.Helper()
	require.Error(t, err)
	assert.True(t, apierrors.IsInvalid(err) || apierrors.IsBadRequest(err), "%v", err)
	assert.Contains(t, err.Error(), message)
}

// full has every field of a Machine that a person can set.
const full = `
roles: [ControlPlane, Etcd, Worker]
versions: {kubelet: v1.37.2, controlPlane: v1.37.2, etcd: v3.7.0, containerRuntime: {name: containerd, version: 1.7.28}}
os:
  packages: [{name: openssl, version: 1:3.0.15-1~deb12u1}, {name: telnet, state: Absent}, {name: g++, state: Present}]
  securityUpdates: None
  reboot: IfRequired
packageSources: [{name: kubernetes, uri: "https://mirror.corp:8443/kubernetes/{minor}/deb/", suites: ["/"], components: [main], signedBy: refit-kubernetes}]
kubelet: {configuration: {maxPods: 200, evictionHard: {memory.available: 100Mi}}}
kubeadm: {ignorePreflightErrors: [CreateJob], renewCertificatesBefore: 720h0m0s}
node: {labels: {rack: r1}, taints: [{key: k, value: v, effect: NoExecute}]}
drain: {timeout: 30m0s, onTimeout: Fail, emptyDir: Evict, unmanagedPods: Fail, skipWaitForDeleteTimeout: 0s, loadBalancerDelay: 10s, volumeDetachTimeout: 5m0s, onVolumesAttached: Proceed, singleNode: Refuse, skipForMinor: true}
hooks: {preApply: [raid-check], postApply: [smoke]}
driftPolicy: Repair
availability: InService
paused: true
`

const fullDeployment = `
selector: {matchLabels: {pool: a}}
template: {spec: {versions: {kubelet: v1.37.2}, drain: {timeout: 1h0m0s}}}
replicas: 3
paused: true
progressDeadline: 1h0m0s
revisionHistoryLimit: 10
strategy:
  type: RollingUpdate
  rollingUpdate:
    maxUnavailable: 0
    maxSurge: 1
    maxInFlight: 10%
    topologyKey: topology.kubernetes.io/zone
    canary: {count: 1, perTopologyDomain: true}
    soak: 5m0s
    checks: [{name: pods-ready, cel: "true"}, {name: error-rate, prometheus: {url: "http://prometheus:9090", query: "rate(errors[5m]) < 1"}}]
    failureThreshold: 10%
    windows: [{schedule: "0 22 * * 1-5", duration: 6h0m0s, timeZone: Europe/Berlin}, {schedule: "*/15 0-4,22-23 1,15 JAN-DEC Sat", duration: 168h0m0s}]
`

func TestValidObjectsSurviveARoundTrip(t *testing.T) {
	for name, tc := range map[string]struct{ kind, name, spec string }{
		"machine with every field":    {"Machine", "m1", full},
		"smallest machine":            {"Machine", "m2", "roles: [Worker]"},
		"vendor suffix":               {"Machine", "m3", `{roles: [Worker], versions: {kubelet: v1.29.0-eks-a5ec690, containerRuntime: {name: cri-o, version: "1.31.0"}}}`},
		"build metadata":              {"Machine", "m4", `{roles: [Worker], versions: {kubelet: v1.29.6+k3s1}}`},
		"release candidate":           {"Machine", "m5", `{roles: [ControlPlane], versions: {controlPlane: v1.38.0-rc.1}}`},
		"Debian's runtime version":    {"Machine", "m6", `{roles: [Worker], versions: {containerRuntime: {name: containerd, version: 1.6.20~ds1}}}`},
		"deployment with every field": {"MachineDeployment", "d1", fullDeployment},
		"smallest deployment":         {"MachineDeployment", "d2", "{selector: {}, template: {}}"},
		"hundred percent":             {"MachineDeployment", "d3", `{selector: {}, template: {}, strategy: {rollingUpdate: {maxUnavailable: "100%"}}}`},
		"budget by minAvailable":      {"MachineDisruptionBudget", "b1", `{selector: {}, minAvailable: "50%", topologyKey: rack}`},
		"budget of zero":              {"MachineDisruptionBudget", "b2", `{selector: {matchLabels: {a: b}}, maxUnavailable: 0}`},
		"ledger":                      {"Ledger", "refit", "{epoch: 3, stopped: true, slots: [" + slot + "]}"},
	} {
		t.Run(name, func(t *testing.T) {
			want := object(t, tc.kind, tc.name, tc.spec)
			_, err := create(t, want)
			require.NoError(t, err)
			got, err := admin.Resource(gvr(resources[tc.kind])).Namespace(namespace).Get(t.Context(), tc.name, metav1.GetOptions{})
			require.NoError(t, err)
			assert.Equal(t, want.Object["spec"], got.Object["spec"], "nothing pruned, nothing defaulted")
		})
	}
}

func TestRolesOfAControlPlaneAreFixedOnceTheHostHasReported(t *testing.T) {
	const refusal = "spec.roles: ControlPlane and Etcd cannot be added or removed once the host has reported, unless ControlPlane is what the host turned out to be: a host does not change its role in place"
	setRoles := func(name string, roles ...any) error {
		o, err := machines(admin).Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		o.Object["spec"].(map[string]any)["roles"] = roles
		_, err = machines(admin).Update(t.Context(), o, metav1.UpdateOptions{})
		return err
	}
	_, err := create(t, object(t, "Machine", "r1", "roles: [Worker]"))
	require.NoError(t, err)
	require.NoError(t, setRoles("r1", "ControlPlane"), "before the report, a mistake can be corrected")
	setStatus(t, "r1", "{host: {machineID: m}, versions: {controlPlane: {apiServer: v1.37.2}}}")

	requireRefused(t, setRoles("r1", "Worker"), refusal)
	requireRefused(t, setRoles("r1", "ControlPlane", "Etcd"), refusal)
	require.NoError(t, setRoles("r1", "ControlPlane", "Worker"), "Worker comes and goes")
}

func TestARoleCanBeCorrectedToWhatTheHostTurnedOutToBe(t *testing.T) {
	const refusal = "unless ControlPlane is what the host turned out to be"
	setRoles := func(name string, roles ...any) error {
		o, err := machines(admin).Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		o.Object["spec"].(map[string]any)["roles"] = roles
		_, err = machines(admin).Update(t.Context(), o, metav1.UpdateOptions{})
		return err
	}
	for name, status := range map[string]string{"r2": "{host: {machineID: m}, versions: {controlPlane: {apiServer: Unknown}}}", "r3": "{host: {machineID: m}, versions: {kubelet: v1.37.2}}"} {
		_, err := create(t, object(t, "Machine", name, "roles: [Worker]"))
		require.NoError(t, err)
		setStatus(t, name, status)
	}
	require.NoError(t, setRoles("r2", "ControlPlane", "Worker"), "it runs an API server, whatever its version")
	requireRefused(t, setRoles("r2", "Worker"), refusal)
	requireRefused(t, setRoles("r3", "ControlPlane"), refusal)
}

func TestStatusKeepsWhatAgentAndCoordinatorReport(t *testing.T) {
	_, err := create(t, object(t, "Machine", "s1", "roles: [ControlPlane]"))
	require.NoError(t, err)
	setStatus(t, "s1", fullStatus)
	got, err := machines(admin).Get(t.Context(), "s1", metav1.GetOptions{})
	require.NoError(t, err)
	want := object(t, "Machine", "s1", fullStatus).Object["spec"]
	assert.Equal(t, want, got.Object["status"])
	text, err := got.MarshalJSON()
	require.NoError(t, err)
	assert.Less(t, len(text), 16<<10, "a Machine stays small: "+strings.TrimSpace(fmt.Sprint(len(text))))
}
