package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/preview"
	"github.com/refit-dev/refit/pkg/usage"
)

// asProgram has the test's own binary be the program.
const asProgram = "REFIT_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

const planData = "../../cli/plan/testdata/"

// program runs the real program, without any cluster in reach.
func program(t *testing.T, stdin string, args ...string) (out, errs string, code int) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), asProgram+"=1", "KUBECONFIG=/nonexistent", "HOME="+t.TempDir())
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		require.NoError(t, err)
	}
	return stdout.String(), stderr.String(), code
}

func edited(t *testing.T, file, old, now string) string {
	t.Helper()
	text, err := os.ReadFile(planData + file)
	require.NoError(t, err)
	require.Contains(t, string(text), old)
	path := filepath.Join(t.TempDir(), "objects.yaml")
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(text), old, now)), 0o600))
	return path
}

func TestPlanEndsWithWhatItFound(t *testing.T) {
	good := []string{"plan", "-f", planData + "objects.yaml", "--facts", planData + "facts.yaml"}
	for name, tc := range map[string]struct {
		args   []string
		code   int
		stdout string
		stderr string
	}{
		"planned":                    {good, 0, "cp-1       v1.36.3 → v1.37.2", ""},
		"a machine of several":       {append(good, "worker-1"), 0, "worker-1", ""},
		"nothing to do":              {[]string{"plan", "-f", edited(t, "objects.yaml", "v1.37.2", "v1.36.3"), "--facts", planData + "facts.yaml", "cp-1"}, 0, "UpToDate", ""},
		"refused":                    {[]string{"plan", "-f", edited(t, "objects.yaml", "v1.37.2", "v1.37.9"), "--facts", planData + "facts.yaml"}, usage.ExitRefused, "cp-1: refused: VersionNotFound: for spec.versions.controlPlane", "error: refused for 2 of 3 machines: cp-1, worker-1"},
		"another than the refused":   {[]string{"plan", "-f", edited(t, "objects.yaml", "v1.37.2", "v1.37.9"), "--facts", planData + "facts.yaml", "worker-2"}, 0, "worker-2", ""},
		"bad objects":                {[]string{"plan", "-f", edited(t, "objects.yaml", "kubelet: v1.37.2", "kubelet: 1.37.2")}, usage.ExitCode, "", "objects.yaml:8: spec.template.spec.versions.kubelet: Invalid value"},
		"bad facts":                  {[]string{"plan", "-f", planData + "objects.yaml", "--facts", edited(t, "facts.yaml", "hostname:", "hostnam:")}, usage.ExitCode, "", "objects.yaml:3: host.hostnam: unknown field"},
		"objects where facts belong": {[]string{"plan", "-f", planData + "objects.yaml", "--facts", planData + "objects.yaml"}, usage.ExitCode, "", "objects.yaml:2: kind: MachineDeployment is not read here: give Facts, Machine"},
		"standard input twice":       {[]string{"plan", "-f", "-", "-f", "-"}, usage.ExitCode, "", "the standard input can be read once"},
		"and for facts too":          {[]string{"plan", "-f", "-", "--facts", "-"}, usage.ExitCode, "", "the standard input can be read once"},
		"a file that is not there":   {[]string{"plan", "-f", "/nonexistent.yaml"}, usage.ExitCode, "", "/nonexistent.yaml: it cannot be read"},
		"a machine that is not":      {append(good, "worker-9"), usage.ExitCode, "", "worker-9 is not there"},
		"an unknown format":          {append(good, "-o", "xml"), usage.ExitCode, "", `--output "xml" is not known: it is table or wide or yaml or json`},
		"pools alone":                {[]string{"plan", "-f", "-"}, usage.ExitCode, "", "there is no object in it"},
		"no cluster":                 {[]string{"plan"}, usage.ExitFault, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, code := program(t, "", tc.args...)
			require.Equal(t, tc.code, code, "%s%s", out, errs)
			assert.Contains(t, out, tc.stdout)
			assert.Contains(t, errs, tc.stderr)
		})
	}
}

func TestPlanPrintsTheSameAsJSONAndYAML(t *testing.T) {
	objects, err := os.ReadFile(planData + "objects.yaml")
	require.NoError(t, err)
	asJSON, _, code := program(t, string(objects), "plan", "-f", "-", "--facts", planData+"facts.yaml", "-o", "json")
	require.Zero(t, code)
	asYAML, _, code := program(t, string(objects), "plan", "-f", "-", "--facts", planData+"facts.yaml", "-o", "yaml")
	require.Zero(t, code)
	var fromJSON, fromYAML preview.PlanList
	require.NoError(t, json.Unmarshal([]byte(asJSON), &fromJSON))
	require.NoError(t, yaml.UnmarshalStrict([]byte(asYAML), &fromYAML))
	assert.Equal(t, fromJSON, fromYAML)
	assert.Equal(t, preview.Kind, fromJSON.Kind)
	assert.Equal(t, "refit.dev/v1alpha1", fromJSON.APIVersion)
	assert.Len(t, fromJSON.Items, 3)
}

func TestAClusterIsPlannedAsItIsAndAsAnEditWouldMakeIt(t *testing.T) {
	d := newDesk(t)
	d.node("cp-1", "registry.k8s.io/kube-apiserver:v1.36.3")
	d.node("worker-1", "")
	go d.rollOut()
	d.ok("install", "--coordinator-image", image)
	d.ok("adopt", "--apply")
	assert.Contains(t, d.refused(usage.ExitRefused, "plan"), "refused for 2 of 2 machines")
	d.report("cp-1", "v1.36.3")
	d.report("worker-1", "")
	out := d.ok("plan")
	assert.Regexp(t, `cp-1 .* UpToDate\n`, out)
	assert.Regexp(t, `worker-1 .* UpToDate\n`, out)

	edit := filepath.Join(t.TempDir(), "pool.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(edit, []byte(text), 0o600)) }
	pool := "apiVersion: refit.dev/v1alpha1\nkind: MachineDeployment\nmetadata: {name: POOL}\nspec:\n  selector: {matchLabels: {refit.dev/pool: POOL}}\n  template: {spec: {versions: VERSIONS}}\n---\n"
	workers := strings.NewReplacer("POOL", "workers", "VERSIONS", "{kubelet: v1.37.2}").Replace(pool)
	write(workers)
	assert.Contains(t, d.refused(usage.ExitCode, "plan", "-f", edit), "there is no Machine in "+edit+": add the pool's Machines, or lay the files over the cluster's with --live")
	d.refused(usage.ExitRefused, "plan", "-f", edit, "--live", "machinedeployment/workers")
	write(workers + strings.NewReplacer("POOL", "control-plane", "VERSIONS", "{kubelet: v1.37.2, controlPlane: v1.37.2}").Replace(pool))
	out = d.ok("plan", "-f", edit, "--live", "-A")
	assert.Regexp(t, `(?s)cp-1 +v1.36.3 → v1.37.2 .*Pending.*worker-1 +- +v1.36.3 → v1.37.2 .*Pending`, out)
	assert.Regexp(t, `worker-1 .* UpToDate\n`, d.ok("plan", "worker-1"), "nothing was applied")

	write("apiVersion: refit.dev/v1alpha1\nkind: Machine\nmetadata: {name: worker-1}\nspec:\n  roles: [ControlPlane]\n")
	assert.Contains(t, d.refused(usage.ExitCode, "plan", "-f", edit, "--live"), "pool.yaml:5: spec.roles: Invalid value: spec.roles: ControlPlane and Etcd cannot be added or removed once the host has reported")
}

// report plays an agent.
func (d *desk) report(name, apiServer string) {
	d.Helper()
	m := &v1alpha1.Machine{}
	require.NoError(d, d.client.Get(d.Context(), client.ObjectKey{Namespace: "refit", Name: name}, m))
	m.Status.Host = &v1alpha1.HostIdentity{MachineID: "id-" + name}
	m.Status.Versions = &v1alpha1.ObservedVersions{Kubelet: "v1.36.3", Kubeadm: "v1.36.3", ContainerRuntime: &v1alpha1.ObservedRuntime{Name: "containerd", Version: "1.7.35", Text: "containerd://1.7.35"}}
	if apiServer != "" {
		m.Status.Versions.ControlPlane = &v1alpha1.ObservedControlPlane{APIServer: apiServer, ControllerManager: apiServer, Scheduler: apiServer}
	}
	m.Status.Conditions = []metav1.Condition{}
	require.NoError(d, d.client.Status().Update(d.Context(), m))
}
