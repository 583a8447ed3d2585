package manifest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/manifest"
	"github.com/refit-dev/refit/pkg/manifest/crd"
	"github.com/refit-dev/refit/pkg/manifest/rules"
)

var kinds = []string{"Machine", "MachineDeployment", "Node", manifest.KindFacts}

func read(t *testing.T, text string, o manifest.Options) ([]manifest.Object, error) {
	t.Helper()
	o.Kinds, o.Namespace, o.Stdin = kinds, "refit", strings.NewReader(text)
	if o.Check == nil {
		o.Check = crd.Check
	}
	return manifest.Read([]string{"-"}, o)
}

const head = "apiVersion: refit.dev/v1alpha1\nkind: Machine\nmetadata: {name: w1}\n"

func TestBadInputIsNamedWithFileLineAndField(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"a version without v":             {head + "spec:\n  roles: [Worker]\n  versions:\n    kubelet: \"1.37.2\"\n", `stdin:7: spec.versions.kubelet: Invalid value: "1.37.2": must be a Kubernetes version such as v1.37.2`},
		"a field that does not exist":     {head + "spec:\n  roles: [Worker]\n  versions:\n    kublet: v1.37.2\n", "stdin:7: spec.versions.kublet: unknown field: there is no such field"},
		"an unknown field of metadata":    {"apiVersion: refit.dev/v1alpha1\nkind: Machine\nmetadata:\n  name: w1\n  lables: {}\nspec: {roles: [Worker]}\n", "stdin:5: metadata.lables: unknown field"},
		"a wrong type":                    {head + "spec:\n  roles: Worker\n", "stdin:5: spec.roles: Invalid value"},
		"a missing field":                 {head + "spec:\n  versions: {kubelet: v1.37.2}\n", "stdin:4: spec.roles: Required value"},
		"a key that is there twice":       {head + "spec:\n  roles: [Worker]\n  paused: true\n  roles: [ControlPlane]\n", "stdin:7: spec.roles: this key is there twice, first on line 5: keep one"},
		"a rule about several fields":     {head + "spec:\n  roles: [Worker]\n  versions:\n    controlPlane: v1.37.2\n", "stdin:7: spec.versions.controlPlane: Invalid value: versions.controlPlane is only for machines with role ControlPlane"},
		"an item of a list":               {head + "spec:\n  roles: [Worker]\n  os:\n    packages:\n    - name: openssl\n    - name: telnet-\n", "stdin:9: spec.os.packages[1].name: Invalid value"},
		"the second document":             {head + "spec: {roles: [Worker]}\n---\n# the other\n" + strings.Replace(head, "w1", "w2", 1) + "spec: {roles: [Master]}\n", `stdin:10: spec.roles[0]: Unsupported value: "Master"`},
		"an item of a List":               {"apiVersion: v1\nkind: List\nitems:\n- apiVersion: refit.dev/v1alpha1\n  kind: Machine\n  metadata: {name: w1}\n  spec:\n    roles: [Worker]\n    paused: 1\n", "stdin:9: spec.paused: Invalid value"},
		"an object that is there twice":   {head + "spec: {roles: [Worker]}\n---\n" + head + "spec: {roles: [Worker]}\n", "stdin:8: metadata.name: Machine w1 is there twice, first at stdin:1: keep one"},
		"no YAML":                         {"spec: [\n", "stdin:1: this is neither YAML nor JSON"},
		"an anchor that is not there":     {head + "spec:\n  roles: [Worker]\n  versions:\n    kubelet: *none\n  paused: false\n", "stdin:7: this is neither YAML nor JSON"},
		"a text that is too deep":         {head + "spec:\n  x: " + strings.Repeat("[", 20000) + "\n\n", "stdin:5: this is neither YAML nor JSON"},
		"what is no text":                 {head + "spec:\n  roles: [Worker]\n  x: \x00\x01\xff\n  y: 1\n", "stdin:6: this is neither YAML nor JSON"},
		"what is no UTF-8":                {head + "spec:\n  x: \xff\xfe\n", "stdin:5: this is neither YAML nor JSON"},
		"the same in a later document":    {head + "spec: {roles: [Worker]}\n---\n" + strings.Replace(head, "w1", "w2", 1) + "spec: *none\n", "stdin:9: this is neither YAML nor JSON"},
		"a text":                          {"hello\n", "stdin:1: this is a string, not an object with apiVersion and kind"},
		"nothing":                         {"# nothing\n", "stdin: there is no object in it"},
		"no kind":                         {"apiVersion: refit.dev/v1alpha1\nmetadata: {name: w1}\n", "stdin:1: kind: Required value"},
		"another kind":                    {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: w1}\n", "stdin:2: kind: ConfigMap is not read here: give Machine, MachineDeployment"},
		"another version":                 {"apiVersion: refit.dev/v1\nkind: Machine\nmetadata: {name: w1}\n", "stdin:1: apiVersion: Machine of refit.dev/v1 is not known to this Refit: it reads refit.dev/v1alpha1"},
		"no name":                         {"apiVersion: refit.dev/v1alpha1\nkind: Machine\nmetadata: {labels: {a: b}}\nspec: {roles: [Worker]}\n", "stdin:3: metadata.name: Required value"},
		"a name that no Node has":         {"apiVersion: refit.dev/v1alpha1\nkind: Machine\nmetadata: {name: W_1}\nspec: {roles: [Worker]}\n", `stdin:3: metadata.name: Invalid value: "W_1"`},
		"facts with an unknown field":     {"apiVersion: facts.refit.dev/v1\nkind: Facts\nhost:\n  hostnam: w1\n", "stdin:4: host.hostnam: unknown field"},
		"facts with a wrong type":         {"apiVersion: facts.refit.dev/v1\nkind: Facts\nhost: {}\nos: {}\nreboot: {}\npackages:\n  installed:\n  - name: kubelet\n    version: 1.36\n", "stdin:9: packages.installed[0].version: must be a string, and is the number 1.36"},
		"facts with a time that is none":  {"apiVersion: facts.refit.dev/v1\nkind: Facts\ncertificates:\n- path: /x\n  notAfter: soon\n", "stdin:5: certificates[0].notAfter: must be a time such as"},
		"facts with a digest that is cut": {"apiVersion: facts.refit.dev/v1\nkind: Facts\nhost: {}\nos: {}\nreboot: {}\npackages:\n  indexes:\n  - uri: https://mirror.example/\n    packages: [kubelet]\n    candidates:\n    - name: kubelet\n      version: 1.37.2-1.1\n      source: https://mirror.example/\n      path: ./k.deb\n      size: 1\n      sha256: abc\n", "stdin:16: packages.indexes[0].candidates[0].sha256: \"abc\" is no SHA-256 sum of 64 hexadecimal digits"},
		"facts of another format":         {"apiVersion: facts.refit.dev/v2\nkind: Facts\n", "stdin:1: apiVersion: Facts of facts.refit.dev/v2 is not known to this Refit: it reads facts.refit.dev/v1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(t, tc.text, manifest.Options{})
			require.Error(t, err)
			assert.True(t, manifest.Invalid(err))
			assert.Contains(t, err.Error(), tc.want)
		})
	}
}

func TestEverythingThatIsWrongIsSaidAtOnceInTheOrderOfTheText(t *testing.T) {
	_, err := read(t, head+"spec:\n  roles: [Worker]\n  paused: no-bool\n  driftPolicy: Never\n", manifest.Options{})
	require.Error(t, err)
	lines := strings.Split(err.Error(), "\n")
	require.Len(t, lines, 2, err.Error())
	assert.Contains(t, lines[0], "stdin:6: spec.paused")
	assert.Contains(t, lines[1], "stdin:7: spec.driftPolicy")
}

func TestDocumentsListsAndJSONAreRead(t *testing.T) {
	for name, tc := range map[string]struct {
		text  string
		names []string
	}{
		"documents":                     {"---\n" + head + "spec: {roles: [Worker]}\n---\n---\n" + strings.Replace(head, "w1", "w2", 1) + "spec: {roles: [Worker]}\n...\n", []string{"w1", "w2"}},
		"a list as kubectl writes it":   {"apiVersion: v1\nkind: List\nmetadata: {resourceVersion: \"\"}\nitems:\n- {apiVersion: refit.dev/v1alpha1, kind: Machine, metadata: {name: w1, creationTimestamp: null}, spec: {roles: [Worker]}, status: {}}\n", []string{"w1"}},
		"a list as the API server does": {"apiVersion: refit.dev/v1alpha1\nkind: MachineList\nitems:\n- {metadata: {name: w1}, spec: {roles: [Worker]}}\n", []string{"w1"}},
		"JSON":                          {`{"apiVersion":"refit.dev/v1alpha1","kind":"Machine","metadata":{"name":"w1"},"spec":{"roles":["Worker"]}}`, []string{"w1"}},
		"anchors":                       {"apiVersion: refit.dev/v1alpha1\nkind: Machine\nmetadata: {name: w1}\nspec: {roles: [Worker], versions: {kubelet: &v v1.37.2}, node: {labels: {version: *v}}}\n", []string{"w1"}},
		"lines with a carriage return":  {strings.ReplaceAll(head+"spec: {roles: [Worker]}\n", "\n", "\r\n"), []string{"w1"}},
		"what stands behind a marker":   {"--- {apiVersion: refit.dev/v1alpha1, kind: Machine, metadata: {name: w1}, spec: {roles: [Worker]}}\n", []string{"w1"}},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := read(t, tc.text, manifest.Options{})
			require.NoError(t, err)
			var names []string
			for _, o := range objects {
				names = append(names, o.Meta.Name)
				assert.Equal(t, "refit", o.Meta.Namespace)
			}
			assert.Equal(t, tc.names, names)
		})
	}
}

func TestAFileThatIsNotThereIsBadInput(t *testing.T) {
	_, err := manifest.Read([]string{filepath.Join(t.TempDir(), "none.yaml")}, manifest.Options{Kinds: kinds, Check: crd.Check})
	require.Error(t, err)
	assert.True(t, manifest.Invalid(err))
}

func TestARuleAboutAChangeIsJudgedAgainstWhatItReplaces(t *testing.T) {
	old := map[string]any{
		"apiVersion": "refit.dev/v1alpha1", "kind": "Machine", "metadata": map[string]any{"name": "w1"},
		"spec": map[string]any{"roles": []any{"Worker"}}, "status": map[string]any{"host": map[string]any{"machineID": "m"}},
	}
	_, err := read(t, head+"spec:\n  roles: [ControlPlane]\n", manifest.Options{Old: func(kind, namespace, name string) map[string]any {
		assert.Equal(t, []string{"Machine", "refit", "w1"}, []string{kind, namespace, name})
		return old
	}})
	require.ErrorContains(t, err, "stdin:5: spec.roles: Invalid value: spec.roles: ControlPlane and Etcd cannot be added or removed once the host has reported")
}

// specs are judged by both: the agent's own rules have to be as strict as the API server's code.
var specs = []string{
	"{roles: [Worker]}", "{roles: [ControlPlane], versions: {controlPlane: v1.37.2, kubelet: v1.36.0-eks-a5ec690}}", "{roles: [Worker], kubelet: {configuration: {maxPods: 200, any: [1]}}}",
	"{roles: [Worker], os: {packages: [{name: openssl, version: 3.0.15-1~deb12u1}, {name: telnet, state: Absent}], reboot: Never}}",
	"{roles: [Worker], drain: {timeout: 30m, skipForMinor: true}, hooks: {preApply: [raid-check]}, availability: Standby, paused: true, driftPolicy: Report}",
	`{roles: [Worker], packageSources: [{name: kubernetes, uri: "https://mirror.corp/{minor}/deb/", suites: [/], signedBy: refit}], node: {labels: {a: b}, taints: [{key: a, effect: NoSchedule}]}}`,
	"{roles: [Worker], versions: {controlPlane: v1.37.2}}", "{roles: [ControlPlane], versions: {etcd: 3.6.4}}", "{roles: [Master]}", "{roles: []}", "{}", "{roles: [Worker, Worker]}", "{roles: Worker}",
	`{roles: [Worker], versions: {kubelet: "v1.30.4; rm -rf /"}}`, `{roles: [Worker], versions: {kubelet: "v1.30.4\n"}}`, "{roles: [Worker], versions: {kubelet: v1.37}}", "{roles: [Worker], versions: {kubelet: 1.37}}",
	`{roles: [Worker], versions: {containerRuntime: {name: containerd, version: "1.7.28 x"}}}`, "{roles: [Worker], versions: {containerRuntime: {name: docker}}}", "{roles: [Worker], versions: {containerRuntime: {version: 1.7.1}}}",
	`{roles: [Worker], os: {packages: [{name: "--allow-downgrades"}]}}`, "{roles: [Worker], os: {packages: [{name: openssl-}]}}", `{roles: [Worker], os: {packages: [{name: openssl, version: "3.0 || true"}]}}`,
	`{roles: [Worker], os: {packages: [{name: telnet, state: Absent, version: "1"}]}}`, "{roles: [Worker], os: {packages: [{name: telnet}, {name: telnet, state: Absent}]}}", "{roles: [Worker], os: {packages: [{name: telnet, state: Latest}]}}",
	"{roles: [Worker], kubeadm: {ignorePreflightErrors: [all]}}", "{roles: [Worker], kubeadm: {ignorePreflightErrors: [Swap, ALL]}}", "{roles: [Worker], kubeadm: {ignorePreflightErrors: [Swap, Swap]}}",
	`{roles: [Worker], packageSources: [{name: k, uri: "https://u:p@mirror/", signedBy: k}]}`, `{roles: [Worker], packageSources: [{name: k, uri: "https://mirror/"}]}`, `{roles: [Worker], packageSources: [{name: k, uri: "https://m/", signedBy: "../x"}]}`,
	`{roles: [Worker], hooks: {preApply: ["../../bin/sh"]}}`, "{roles: [Worker], drain: {onTimeout: Kill}}", "{roles: [Worker], versions: {kublet: v1.37.2}}", "{roles: [Worker], paused: 1}", "{roles: [Worker], paused: null}",
	"{roles: [Worker], os: []}", "{roles: [Worker], node: {labels: {a: 1}}}", "{roles: [Worker], drain: {timeout: 30}}", "{roles: [Worker], node: {taints: [{key: a, effect: Never}]}}",
	"{roles: [Worker], versions: {kubelet: v1.37.2-" + "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}}",
}

func TestTheSmallRulesAreAsStrictAsTheAPIServersCode(t *testing.T) {
	for _, spec := range specs {
		t.Run(spec, func(t *testing.T) {
			text := head + "spec: " + spec + "\n"
			_, whole := read(t, text, manifest.Options{})
			_, small := read(t, text, manifest.Options{Check: rules.Check})
			require.Equal(t, places(whole), places(small), "the API server's code says: %v\nthe small rules say: %v", whole, small)
		})
	}
}

// places are the lines and fields that an error names.
func places(err error) []string {
	var out []string
	if err == nil {
		return out
	}
	for line := range strings.Lines(err.Error()) {
		parts := strings.SplitN(line, ": ", 3)
		if place := parts[0] + " " + parts[1]; len(out) == 0 || out[len(out)-1] != place {
			out = append(out, place)
		}
	}
	return out
}

func FuzzReadNeverFailsWithoutAReason(f *testing.F) {
	for _, spec := range specs {
		f.Add(head + "spec: " + spec + "\n")
	}
	f.Add("apiVersion: v1\nkind: List\nitems: [a, {kind: 1}]\n--- x\n...\n")
	f.Fuzz(func(t *testing.T, text string) {
		file := filepath.Join(t.TempDir(), "f.yaml")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		objects, err := manifest.Read([]string{file}, manifest.Options{Kinds: kinds, Namespace: "refit", Check: rules.Check})
		if err == nil {
			assert.NotEmpty(t, objects)
		} else {
			assert.True(t, manifest.Invalid(err), "%v", err)
			assert.Contains(t, err.Error(), "f.yaml")
		}
	})
}
