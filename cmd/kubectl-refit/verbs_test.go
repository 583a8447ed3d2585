package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/usage"
	"github.com/refit-dev/refit/test/integration/apiserver"
)

// bench is a namespace of its own on a shared API server.
type bench struct {
	*desk
	namespace string
}

func newBenches(t *testing.T) func(t *testing.T) *bench {
	srv := apiserver.Start(t)
	kubeconfig := srv.WriteKubeconfig(t, t.TempDir(), "kubernetes-admin", "system:masters")
	c := &command{flags: genericclioptions.NewConfigFlags(true)}
	c.flags.KubeConfig = &kubeconfig
	cl, err := c.client()
	require.NoError(t, err)
	count := 0
	return func(t *testing.T) *bench {
		count++
		b := &bench{&desk{T: t, kubeconfig: kubeconfig, client: cl}, fmt.Sprintf("refit-%d", count)}
		require.NoError(t, cl.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.namespace}}))
		return b
	}
}

func (b *bench) in(args ...string) []string { return append([]string{"-n", b.namespace}, args...) }

func (b *bench) ok(args ...string) (out, errs string) {
	b.Helper()
	out, errs, code := b.refit(b.in(args...)...)
	require.Zero(b, code, "%v: %s", args, errs)
	return out, errs
}

func (b *bench) no(code int, args ...string) string {
	b.Helper()
	return b.desk.refused(code, b.in(args...)...)
}

// answer is the command with a person at its input.
func (b *bench) answer(text string, args ...string) (out, errs string, code int) {
	b.Helper()
	var stdout, stderr bytes.Buffer
	root := newRoot(streams{in: strings.NewReader(text), out: &stdout, err: &stderr})
	root.SetArgs(b.in(append(args, "--kubeconfig", b.kubeconfig, "--cache-dir", b.TempDir())...))
	if err := root.ExecuteContext(b.Context()); err != nil {
		return stdout.String(), stderr.String() + err.Error(), exitCode(err)
	}
	return stdout.String(), stderr.String(), 0
}

func (b *bench) pool(name, spec string, edits ...func(*v1alpha1.MachineDeployment)) {
	b.Helper()
	d := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}}
	require.NoError(b, yaml.UnmarshalStrict([]byte(spec), &d.Spec))
	d.Spec.Selector.MatchLabels = map[string]string{"pool": name}
	for _, e := range edits {
		e(d)
	}
	require.NoError(b, b.client.Create(b.Context(), d))
}

// machine makes a Machine with this status.
func (b *bench) machine(name, pool, status string, edits ...func(*v1alpha1.Machine)) {
	b.Helper()
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name, Labels: map[string]string{"pool": pool}}}
	m.Spec.Roles = []v1alpha1.Role{v1alpha1.RoleWorker}
	for _, e := range edits {
		e(m)
	}
	require.NoError(b, b.client.Create(b.Context(), m))
	require.NoError(b, yaml.UnmarshalStrict([]byte(status), &m.Status))
	require.NoError(b, b.client.Status().Update(b.Context(), m))
}

// slots puts machines in flight: name=State.
func (b *bench) slots(states ...string) {
	b.Helper()
	l := &v1alpha1.Ledger{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: v1alpha1.LedgerName}}
	for _, s := range states {
		name, state, _ := strings.Cut(s, "=")
		l.Spec.Slots = append(l.Spec.Slots, v1alpha1.Slot{
			Machine: name, MachineUID: string(b.m(name).UID), GrantID: "g-" + name, Disruption: v1alpha1.DisruptionDrain,
			State: v1alpha1.SlotState(state), ReservedTime: metav1.Now(),
		})
	}
	require.NoError(b, b.client.Create(b.Context(), l))
}

func (b *bench) get(o client.Object, name string) {
	b.Helper()
	require.NoError(b, b.client.Get(context.Background(), client.ObjectKey{Namespace: b.namespace, Name: name}, o))
}

func (b *bench) m(name string) *v1alpha1.Machine {
	b.Helper()
	m := &v1alpha1.Machine{}
	b.get(m, name)
	return m
}

func (b *bench) d(name string) *v1alpha1.MachineDeployment {
	b.Helper()
	d := &v1alpha1.MachineDeployment{}
	b.get(d, name)
	return d
}

func (b *bench) ledger() *v1alpha1.Ledger {
	b.Helper()
	l := &v1alpha1.Ledger{}
	b.get(l, v1alpha1.LedgerName)
	return l
}

const working = `
lastOperation: {id: g-w1, type: Upgrade, state: Processing, step: InstallPackages, stepsDone: 2, stepsTotal: 9}
accepted: {grantID: g-w1}`

func TestTheVerbsOfARollout(t *testing.T) {
	next := newBenches(t)
	for name, test := range map[string]func(*bench){
		"pause and resume of a pool":                        pausesAPool,
		"pause and resume of one machine":                   pausesAMachine,
		"the stop switch of the namespace":                  stopsANamespace,
		"abort says why, and resume takes that back":        aborts,
		"retry takes those that have failed":                retries,
		"next names a machine of a Manual pool":             namesTheNext,
		"forget says what is lost and asks":                 forgets,
		"a dry run writes nothing":                          rehearses,
		"output for programs":                               printsForPrograms,
		"a name that there is not says what there is":       saysWhatThereIs,
		"names are completed":                               completesNames,
		"a change that is exact survives a new status only": isExact,
	} {
		t.Run(name, func(t *testing.T) { test(next(t)) })
	}
}

func pausesAPool(b *bench) {
	b.pool("workers", "{}")
	b.machine("w1", "workers", working)
	b.machine("w2", "workers", "{}")
	b.slots("w1=Accepted", "w2=Granted")
	out, errs := b.ok("pause", "workers")
	assert.Equal(b, "machinedeployment.refit.dev/workers paused\n", out)
	assert.Contains(b, errs, "machine w1 is at work (step 3 of 9: InstallPackages), and finishes")
	assert.Contains(b, errs, "machine w2 has a place and has not begun: it is taken back")
	assert.True(b, b.d("workers").Spec.Paused)
	out, _ = b.ok("pause", "md/workers")
	assert.Equal(b, "machinedeployment.refit.dev/workers already paused\n", out, "that is no error")
	out, _ = b.ok("resume", "machinedeployment.refit.dev/workers")
	assert.Equal(b, "machinedeployment.refit.dev/workers resumed\n", out)
	assert.False(b, b.d("workers").Spec.Paused)
	out, _ = b.ok("resume", "workers")
	assert.Equal(b, "machinedeployment.refit.dev/workers not paused\n", out)
}

func pausesAMachine(b *bench) {
	b.pool("workers", "paused: true")
	for _, name := range []string{"w1", "w2", "w3"} {
		b.machine(name, "workers", "{}")
	}
	out, _ := b.ok("pause", "machine/w1", "machine/w2", "machine/w1")
	assert.Equal(b, "machine.refit.dev/w1 paused\nmachine.refit.dev/w2 paused\n", out)
	assert.True(b, b.m("w2").Spec.Paused)
	assert.False(b, b.m("w3").Spec.Paused)
	_, errs := b.ok("resume", "machine/w1")
	assert.Contains(b, errs, "its pool workers is paused: kubectl refit resume workers")
	_, errs = b.ok("resume", "workers")
	assert.Contains(b, errs, "machine w2 is paused itself: kubectl refit resume machine/w2")
	assert.NotContains(b, errs, "w1")
}

func stopsANamespace(b *bench) {
	b.pool("workers", "paused: true")
	out, _ := b.ok("resume", "--all")
	assert.Equal(b, "ledger.refit.dev/refit not stopped\n", out, "before there is a coordinator")
	out, _ = b.ok("pause", "--all")
	assert.Equal(b, "ledger.refit.dev/refit stopped\n", out)
	assert.True(b, b.ledger().Spec.Stopped)
	out, _ = b.ok("pause", "--all")
	assert.Equal(b, "ledger.refit.dev/refit already stopped\n", out)
	_, errs := b.ok("resume", "workers")
	assert.Contains(b, errs, "the stop switch of namespace "+b.namespace+" is on: kubectl refit resume --all")
	out, _ = b.ok("resume", "--all")
	assert.Equal(b, "ledger.refit.dev/refit resumed\n", out)
	assert.False(b, b.ledger().Spec.Stopped)
	assert.Contains(b, b.no(usage.ExitCode, "pause"), "name what to pause, or give --all, and not both (see kubectl refit pause --help)")
	assert.Contains(b, b.no(usage.ExitCode, "pause", "workers", "--all"), "not both")
}

func aborts(b *bench) {
	b.pool("workers", "{}")
	out, errs := b.ok("abort", "workers", "--reason", "the new kernel loses its disks")
	assert.Equal(b, "machinedeployment.refit.dev/workers aborted\n", out)
	assert.Contains(b, errs, "kubectl refit undo workers")
	assert.True(b, b.d("workers").Spec.Paused)
	assert.Equal(b, "the new kernel loses its disks", b.d("workers").Annotations[v1alpha1.AnnotationAbort])
	out, _ = b.ok("abort", "workers")
	assert.Contains(b, out, "already aborted", "without a reason the one that was given stays")
	assert.Equal(b, "the new kernel loses its disks", b.d("workers").Annotations[v1alpha1.AnnotationAbort])
	b.ok("resume", "workers")
	assert.False(b, b.d("workers").Spec.Paused)
	assert.NotContains(b, b.d("workers").Annotations, v1alpha1.AnnotationAbort)
	assert.Contains(b, b.no(usage.ExitCode, "abort", "machine/w1"), `"machine/w1" cannot be meant here: it is NAME or machinedeployment/NAME`)
	assert.Contains(b, b.no(usage.ExitCode, "abort", "workers", "--reason", strings.Repeat("x", 300)), "1 to 256")
}

func retries(b *bench) {
	b.pool("workers", "{}")
	failed := "rolloutFailure: {class: ApplyFailed, reason: HookFailed, message: smoke says no, terminal: true}"
	b.machine("w1", "workers", failed)
	b.machine("w2", "workers", "{}")
	b.machine("w3", "workers", "hostFailure: {reason: NoSpace, message: /var is full, terminal: true}")
	b.machine("w4", "other", failed)
	out, errs := b.ok("retry", "workers")
	assert.Equal(b, "machine.refit.dev/w1 retried\nmachine.refit.dev/w3 retried\n", out)
	assert.Contains(b, errs, "machine w1 had failed: HookFailed: smoke says no")
	first := b.m("w1").Annotations[v1alpha1.AnnotationRetry]
	assert.NotEmpty(b, first)
	assert.Empty(b, b.m("w2").Annotations)
	assert.Empty(b, b.m("w4").Annotations)
	out, _ = b.ok("retry", "w1", "w2")
	assert.Equal(b, "machine.refit.dev/w1 retried\nmachine.refit.dev/w2 not retried: it has not failed\n", out)
	assert.NotEqual(b, first, b.m("w1").Annotations[v1alpha1.AnnotationRetry], "each retry is a new one")
	b.pool("w4", "{}")
	assert.Contains(b, b.no(usage.ExitCode, "retry", "w4"), "write machine/w4 or machinedeployment/w4")
	out, _ = b.ok("retry", "machinedeployment/w4")
	assert.Equal(b, "machinedeployment.refit.dev/w4 not retried: none of its machines has failed\n", out)
}

func namesTheNext(b *bench) {
	b.pool("workers", "strategy: {type: Manual}")
	b.pool("others", "{}")
	b.machine("w1", "workers", "{}")
	b.machine("o1", "others", "{}")
	b.machine("x1", "none", "{}")
	out, _ := b.ok("next", "w1")
	assert.Equal(b, "machine.refit.dev/w1 next\n", out)
	assert.Equal(b, "1", b.m("w1").Annotations[v1alpha1.AnnotationNext])
	out, _ = b.ok("next", "w1")
	assert.Equal(b, "machine.refit.dev/w1 already next\n", out)
	b.ok("pause", "machine/w1")
	out, _ = b.ok("next", "machine/w1")
	assert.Equal(b, "machine.refit.dev/w1 next\n", out, "another spec needs another word")
	assert.Equal(b, "2", b.m("w1").Annotations[v1alpha1.AnnotationNext])
	assert.Contains(b, b.no(usage.ExitRefused, "next", "w1", "o1"), "set its spec.strategy.type to Manual")
	assert.Contains(b, b.no(usage.ExitRefused, "next", "x1"), "machine x1 has no pool")
}

func forgets(b *bench) {
	b.pool("workers", "{}")
	b.machine("w1", "workers", working)
	b.machine("w2", "workers", "{}")
	b.slots("w1=Accepted")
	assert.Contains(b, b.no(usage.ExitCode, "forget", "w1"), "nobody can be asked: give --yes")
	_, errs, code := b.answer("n\n", "forget", "w1")
	assert.Equal(b, usage.ExitRefused, code)
	assert.Contains(b, errs, "machine w1 is at work (step 3 of 9: InstallPackages) under grant g-w1: nobody waits for its end any more")
	assert.Contains(b, errs, "Forget what runs on w1? [y/N]: not confirmed: nothing was changed")
	assert.Empty(b, b.m("w1").Annotations)
	out, errs, code := b.answer("y\n", "forget", "w1", "w2")
	require.Zero(b, code, errs)
	assert.Equal(b, "machine.refit.dev/w1 forgotten\nmachine.refit.dev/w2 not forgotten: it holds no place\n", out)
	assert.Equal(b, 1, strings.Count(errs, "nobody waits for its end"), "said once")
	assert.Equal(b, "g-w1", b.m("w1").Annotations[v1alpha1.AnnotationForget])
	out, _ = b.ok("forget", "w2")
	assert.Contains(b, out, "not forgotten", "nothing to ask about")
}

func rehearses(b *bench) {
	b.pool("workers", "{}")
	b.machine("w1", "workers", working)
	b.slots("w1=Accepted")
	before := b.d("workers").ResourceVersion
	out, _ := b.ok("pause", "workers", "--dry-run")
	assert.Equal(b, "machinedeployment.refit.dev/workers paused (dry run)\n", out)
	out, _ = b.ok("abort", "workers", "--dry-run=server", "--reason", "x")
	assert.Equal(b, "machinedeployment.refit.dev/workers aborted (server dry run)\n", out)
	out, _ = b.ok("forget", "w1", "--dry-run=client")
	assert.Equal(b, "machine.refit.dev/w1 forgotten (dry run)\n", out, "what changes nothing asks nothing")
	out, _ = b.ok("pause", "workers", "--dry-run=server", "-o", "yaml")
	assert.Contains(b, out, "paused: true")
	assert.Equal(b, before, b.d("workers").ResourceVersion)
	assert.Contains(b, b.no(usage.ExitCode, "pause", "workers", "--dry-run=maybe"), `--dry-run "maybe" is not known`)
	assert.Contains(b, b.no(usage.ExitFault, "pause", "--kubeconfig=/nonexistent", "workers"), "nonexistent")
}

func printsForPrograms(b *bench) {
	b.pool("workers", "{}")
	b.pool("others", "{}")
	out, _ := b.ok("pause", "workers", "-o", "json")
	var d v1alpha1.MachineDeployment
	require.NoError(b, json.Unmarshal([]byte(out), &d))
	assert.Equal(b, "MachineDeployment", d.Kind)
	assert.True(b, d.Spec.Paused)
	assert.Empty(b, d.ManagedFields)
	out, _ = b.ok("resume", "workers", "others", "-o", "name")
	assert.Equal(b, "machinedeployment.refit.dev/workers\nmachinedeployment.refit.dev/others\n", out)
	out, _ = b.ok("pause", "workers", "-o", "jsonpath={.spec.paused}")
	assert.Equal(b, "true", out)
	assert.Contains(b, b.no(usage.ExitCode, "resume", "workers", "-o", "xml"), "--output")
}

func saysWhatThereIs(b *bench) {
	assert.Contains(b, b.no(usage.ExitCode, "pause", "workers"), `there is no MachineDeployment "workers" in namespace `+b.namespace+": the MachineDeployments are none")
	b.pool("workers", "{}")
	b.machine("w1", "workers", "{}")
	assert.Contains(b, b.no(usage.ExitCode, "abort", "wrokers"), "the MachineDeployments are workers (-n names another namespace)")
	assert.Contains(b, b.no(usage.ExitCode, "retry", "x"), `no Machine or MachineDeployment "x"`)
	assert.Contains(b, b.no(usage.ExitCode, "forget"), "kubectl refit forget takes MACHINE... (see kubectl refit forget --help)")
	assert.Contains(b, b.no(usage.ExitCode, "pause", "node/w1"), "it is NAME or machinedeployment/NAME or machine/NAME")
	for i := range 12 {
		b.machine(fmt.Sprintf("m%02d", i), "workers", "{}")
	}
	assert.Contains(b, b.no(usage.ExitCode, "next", "x"), "m09 and 3 more")
}

func completesNames(b *bench) {
	b.pool("workers", "{}")
	b.machine("w1", "workers", "{}")
	offers := func(args ...string) []string {
		out, _ := b.ok(append([]string{"__complete", "--kubeconfig", b.kubeconfig, "-n", b.namespace}, args...)...)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		return lines[:len(lines)-1]
	}
	assert.Equal(b, []string{"workers", "machine/w1"}, offers("pause", ""))
	assert.Equal(b, []string{"machine/w1"}, offers("pause", "workers", "ma"))
	assert.Equal(b, []string{"w1"}, offers("forget", ""))
	assert.Empty(b, offers("abort", "workers", ""))
}

// isExact has a status written between reading and writing, and then a spec.
func isExact(b *bench) {
	b.pool("workers", "strategy: {type: Manual}")
	b.machine("w1", "workers", "{}")
	c := &command{flags: genericclioptions.NewConfigFlags(true)}
	c.flags.KubeConfig, c.flags.Namespace = &b.kubeconfig, &b.namespace
	cl, n, err := c.readNamespace(b.Context())
	require.NoError(b, err)
	targets, err := n.Select([]string{"w1"}, machinesOnly)
	require.NoError(b, err)
	changes, err := n.Next(targets)
	require.NoError(b, err)
	m := b.m("w1")
	m.Status.Phase = v1alpha1.PhaseWaiting
	require.NoError(b, b.client.Status().Update(b.Context(), m))
	require.NoError(b, exactly(b.Context(), cl, &changes[0], nil))
	assert.Equal(b, "1", b.m("w1").Annotations[v1alpha1.AnnotationNext])
	assert.Equal(b, v1alpha1.PhaseWaiting, b.m("w1").Status.Phase)

	m = b.m("w1")
	delete(m.Annotations, v1alpha1.AnnotationNext)
	m.Spec.Paused = true
	require.NoError(b, b.client.Update(b.Context(), m))
	err = exactly(b.Context(), cl, &changes[0], nil)
	require.ErrorContains(b, err, "its spec has changed meanwhile")
	assert.Empty(b, b.m("w1").Annotations)
}

func TestAVerbWithoutRefitInTheClusterSaysSo(t *testing.T) {
	d := newDesk(t)
	require.Eventually(t, func() bool {
		_, _, code := d.refit("uninstall", "--delete-data", "--timeout", "20s")
		return code == 0
	}, time.Minute, interval)
	assert.Contains(t, d.refused(usage.ExitRefused, "pause", "workers"), "run kubectl refit install first")
}
