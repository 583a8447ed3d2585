package upgrade

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/refit-dev/refit/api/v1alpha1"
)

var kubeletStart = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// configured is a worker whose spec wishes for a kubelet configuration, written as YAML; "" wishes for none.
func configured(t *testing.T, configuration string) PlanInput {
	t.Helper()
	in := PlanInput{Machine: "w1", Spec: worker(), Facts: workerFacts("v1.36.3", "1.7.28"), Assignment: v1alpha1.Assignment{ID: "1-a", Type: v1alpha1.OperationReconfigure, Target: v1alpha1.Target{OS: true}}}
	in.Facts.Kubelet.StartTime = &kubeletStart
	in.Facts.Kubelet.Configuration = map[string]any{"maxPods": 110.0, "cgroupDriver": "systemd", "evictionHard": map[string]any{"nodefs.available": "10%"}}
	in.Facts.Kubelet.ConfigArgs = &ConfigArgsFacts{Value: kubeadmConfigArgs}
	if configuration != "" {
		in.Spec.Kubelet = wishFor(t, configuration)
	}
	return in
}

func wishFor(t *testing.T, configuration string) *v1alpha1.KubeletSpec {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(configuration))
	require.NoError(t, err)
	return &v1alpha1.KubeletSpec{Configuration: &runtime.RawExtension{Raw: raw}}
}

// carryOut is the host after the steps of a plan, its kubelet restarted.
func carryOut(t *testing.T, f Facts, p Plan) Facts {
	t.Helper()
	k := *f.Kubelet
	managed := f.ManagedFiles
	f.ManagedFiles = nil
	for _, m := range managed {
		m.ModTime = kubeletStart
		if !slices.ContainsFunc(p.Steps, func(s Step) bool { return s.File != nil && s.File.Path == m.Path }) {
			f.ManagedFiles = append(f.ManagedFiles, m)
		}
	}
	for _, s := range p.Steps {
		if s.Kind == StepWriteConfig && s.File.Path == KubeletDropInPath {
			k.DropIns = nil
		}
		if s.Kind != StepWriteConfig || s.File.Remove {
			continue
		}
		f.ManagedFiles = append(f.ManagedFiles, ManagedFileFacts{Path: s.File.Path, SHA256: contentDigest(s.File.Content), Mode: s.File.Mode, ModTime: kubeletStart})
		if s.File.Path != KubeletDropInPath {
			continue
		}
		var config map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(s.File.Content), &config))
		k.DropIns = []KubeletDropInFacts{{Path: KubeletDropInPath, Configuration: config}}
		k.Configuration = MergeKubeletConfiguration(k.Configuration, config)
		k.Flags = []string{"--config=/var/lib/kubelet/config.yaml", "--config-dir=" + KubeletDropInDir}
	}
	f.Kubelet = &k
	return f
}

func TestAKubeletConfigurationIsWrittenReadAndSeen(t *testing.T) {
	in := configured(t, "{maxPods: 200, evictionHard: {memory.available: 200Mi}}")
	p := plan(t, in)
	assert.Equal(t, []string{"Preflight", "WriteConfig", "WriteConfig", "ReloadUnits", "RestartUnit kubelet.service", "Verify"}, outline(p))
	assert.Nil(t, p.Stage, "nothing has to be fetched")

	config, unit := p.Steps[1].File, p.Steps[2].File
	assert.Equal(t, KubeletDropInPath, config.Path, "the directory is there before the kubelet is told of it")
	assert.YAMLEq(t, "{apiVersion: kubelet.config.k8s.io/v1beta1, kind: KubeletConfiguration, maxPods: 200, evictionHard: {memory.available: 200Mi}}", config.Content)
	assert.Equal(t, KubeletUnitDropInPath, unit.Path)
	assert.Contains(t, unit.Content, `Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml --config-dir=/etc/kubernetes/kubelet.conf.d"`)
	assert.NotContains(t, unit.Content, "EXTRA_ARGS")
	require.NoError(t, CheckKubeletDropIn(config.Content))
	require.NoError(t, CheckUnitDropIn(unit.Content))
	assert.Equal(t, in.Spec.Kubelet.Configuration.Raw, mustJSON(t, p.Steps[5].Expect.KubeletConfiguration.Configuration), "and is looked for at the end")

	in.Facts = carryOut(t, in.Facts, p)
	again := plan(t, in)
	assert.True(t, again.Empty(), "%v", outline(again))
	ok, _, message := UpToDate(in.Spec, reported(in))
	assert.True(t, ok, message)
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return data
}

// reported is the status of a machine as its agent reports it.
func reported(in PlanInput) v1alpha1.MachineStatus {
	return v1alpha1.MachineStatus{Versions: in.Facts.Versions(), OS: in.Facts.ObservedOS(in.Spec.OS), Kubelet: in.Facts.ObservedKubelet(in.Spec)}
}

func TestAConfigurationThatIsWishedForNoMoreIsTakenAway(t *testing.T) {
	in := configured(t, "{maxPods: 200}")
	in.Facts = carryOut(t, in.Facts, plan(t, in))
	in.Spec.Kubelet = nil
	p := plan(t, in)
	require.Equal(t, []string{"Preflight", "WriteConfig", "WriteConfig", "ReloadUnits", "RestartUnit kubelet.service", "Verify"}, outline(p))
	assert.Equal(t, FileChange{Path: KubeletUnitDropInPath, Mode: 0o644, Remove: true}, *p.Steps[1].File, "the kubelet is told of the directory no more before its file goes")
	assert.Equal(t, FileChange{Path: KubeletDropInPath, Mode: 0o644, Remove: true}, *p.Steps[2].File)
	assert.Equal(t, v1alpha1.DisruptionDrain, p.Disruption)
	ok, reason, _ := UpToDate(in.Spec, reported(in))
	assert.False(t, ok)
	assert.Equal(t, ReasonOutdated, reason)

	in.Facts = carryOut(t, in.Facts, p)
	assert.True(t, func() bool { p := plan(t, in); return p.Empty() }())
}

func TestWhatAFieldCostsIsTheLeastThatItMay(t *testing.T) {
	for name, tc := range map[string]struct {
		configuration string
		change        func(in *PlanInput)
		want          v1alpha1.Disruption
	}{
		"a field that pods do not depend on": {"{containerLogMaxSize: 50Mi, logging: {verbosity: 4}}", nil, v1alpha1.DisruptionRestart},
		"a field that pods are admitted by":  {"{maxPods: 200}", nil, v1alpha1.DisruptionDrain},
		"one of each":                        {"{containerLogMaxSize: 50Mi, maxPods: 200}", nil, v1alpha1.DisruptionDrain},
		"a field that is like that already":  {"{maxPods: 110, containerLogMaxSize: 50Mi}", nil, v1alpha1.DisruptionRestart},
		"a threshold of eviction":            {"{evictionHard: {memory.available: 1Gi}}", nil, v1alpha1.DisruptionDrain},
		"drop-ins of others that nothing had read": {"{containerLogMaxSize: 50Mi}", func(in *PlanInput) {
			in.Facts.Kubelet.DropIns = []KubeletDropInFacts{{Path: KubeletDropInDir + "/10-mine.conf", Configuration: map[string]any{"maxPods": 20.0}}}
		}, v1alpha1.DisruptionDrain},
	} {
		t.Run(name, func(t *testing.T) {
			in := configured(t, tc.configuration)
			if tc.change != nil {
				tc.change(&in)
			}
			assert.Equal(t, tc.want, plan(t, in).Disruption)
		})
	}
	for field := range restartFields {
		assert.Contains(t, kubeletFields, field, "the list of what costs little names a field that there is")
	}
}

func TestAFieldThatIsTakenOutOfTheWishCostsWhatItIsWorth(t *testing.T) {
	in := configured(t, "{maxPods: 200, containerLogMaxSize: 50Mi}")
	in.Facts = carryOut(t, in.Facts, plan(t, in))
	in.Spec.Kubelet = wishFor(t, "{containerLogMaxSize: 50Mi}")
	assert.Equal(t, v1alpha1.DisruptionDrain, plan(t, in).Disruption)
	in.Spec.Kubelet = wishFor(t, "{maxPods: 200}")
	assert.Equal(t, v1alpha1.DisruptionRestart, plan(t, in).Disruption)
}

func TestAConfigurationRidesInTheWindowOfTheKubelet(t *testing.T) {
	in := configured(t, "{containerLogMaxSize: 50Mi}")
	in.Assignment = kubeletTo("v1.37.2", "v1.37.2")
	in.Assignment.Target.OS = true
	in.Candidates = candidatesOf([]string{"v1.37.2"}, nil)
	p := plan(t, in)
	assert.Equal(t, []string{"InstallPackages kubelet=1.37.2-1.1 kubectl=1.37.2-1.1", "HoldPackages kubelet kubectl", "WriteConfig", "WriteConfig", "ReloadUnits", "RestartUnit kubelet.service", "Verify"}, outline(p)[7:])
	in.Assignment.Target.OS = false
	assert.NotContains(t, outline(plan(t, in)), "WriteConfig", "it rides on the last window only")
}

func TestAConfigurationIsReadStrictlyAsItsKubeletWould(t *testing.T) {
	for name, tc := range map[string]struct{ configuration, reason, says string }{
		"a field that is none":           {"{maxPod: 200}", ReasonConfigurationInvalid, "maxPod is no field"},
		"a field within one":             {"{logging: {level: 3}}", ReasonConfigurationInvalid, "logging.level is no field"},
		"a field within a list":          {"{registerWithTaints: [{key: a, effect: NoSchedule, vlaue: b}]}", ReasonConfigurationInvalid, "registerWithTaints[0].vlaue is no field"},
		"a field that came later":        {"{defaultPodSysctls: {a: b}}", ReasonConfigurationInvalid, "defaultPodSysctls is known to kubelets from v1.37 on"},
		"a text for a number":            {"{maxPods: \"200\"}", ReasonConfigurationInvalid, `maxPods is "200", and the kubelet wants a whole number`},
		"half a pod":                     {"{maxPods: 1.5}", ReasonConfigurationInvalid, "maxPods is 1.5"},
		"a number that is too large":     {"{maxPods: 3000000000}", ReasonConfigurationInvalid, "maxPods is 3e+09"},
		"a duration without a unit":      {"{syncFrequency: \"10\"}", ReasonConfigurationInvalid, "a duration such as 30s"},
		"a list for a text":              {"{clusterDomain: [a]}", ReasonConfigurationInvalid, "clusterDomain is a list"},
		"a text for a list":              {"{clusterDNS: 10.96.0.10}", ReasonConfigurationInvalid, "wants a list"},
		"fields for a number":            {"{maxPods: {a: 1}}", ReasonConfigurationInvalid, "maxPods has fields of its own"},
		"nothing":                        {"{maxPods: null}", ReasonConfigurationInvalid, "maxPods is null"},
		"a gate that is no truth":        {"{featureGates: {NodeSwap: \"true\"}}", ReasonConfigurationInvalid, "featureGates.NodeSwap"},
		"no object":                      {"[1]", ReasonConfigurationInvalid, "is no object"},
		"another kind":                   {"{kind: Pod}", ReasonConfigurationInvalid, "has kind Pod"},
		"static pods":                    {"{staticPodPath: /tmp}", ReasonConfigurationRefused, "staticPodPath"},
		"static pods from elsewhere":     {"{staticPodURL: \"http://a\", staticPodURLHeader: {A: [b]}}", ReasonConfigurationRefused, "staticPodURL, staticPodURLHeader"},
		"who may":                        {"{authentication: {anonymous: {enabled: true}}, authorization: {mode: AlwaysAllow}}", ReasonConfigurationRefused, "authentication, authorization"},
		"another runtime":                {"{containerRuntimeEndpoint: \"unix:///x\", imageServiceEndpoint: \"unix:///x\"}", ReasonConfigurationRefused, "containerRuntimeEndpoint, imageServiceEndpoint"},
		"keys":                           {"{tlsCertFile: /x, tlsPrivateKeyFile: /y, tlsMinVersion: VersionTLS10}", ReasonConfigurationRefused, "tlsCertFile, tlsMinVersion, tlsPrivateKeyFile"},
		"an emptied one that is refused": {"{authorization: null}", ReasonConfigurationRefused, "authorization"},
		"a health that nobody could see": {"{healthzPort: 0}", ReasonConfigurationRefused, "healthzPort"},
	} {
		t.Run(name, func(t *testing.T) {
			in := configured(t, tc.configuration)
			_, err := NewPlan(in)
			blocked := requireBlocked(t, err, tc.reason)
			assert.True(t, blocked.Terminal, "another spec is needed")
			assert.Contains(t, blocked.Message, "spec.kubelet.configuration")
			assert.Contains(t, blocked.Message, tc.says)
			ok, _, _ := UpToDate(in.Spec, reported(in))
			assert.False(t, ok)
		})
	}
}

func TestTheFieldsAreThoseOfTheKubeletToCome(t *testing.T) {
	in := configured(t, "{defaultPodSysctls: {net.core.somaxconn: \"1024\"}}")
	in.Assignment = kubeletTo("v1.37.2", "v1.37.2")
	in.Assignment.Target.OS = true
	in.Candidates = candidatesOf([]string{"v1.37.2"}, nil)
	assert.NotEmpty(t, plan(t, in).Steps)
}

func TestAKubeletThatCannotBeToldIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(f *Facts)
		says   string
	}{
		"a unit of another make":          {func(f *Facts) { f.Kubelet.ConfigArgs = nil }, "does not start it with $KUBELET_CONFIG_ARGS"},
		"a file that wins over drop-ins":  {func(f *Facts) { f.Kubelet.ConfigArgs.EnvironmentFile = "/etc/default/kubelet" }, "/etc/default/kubelet sets KUBELET_CONFIG_ARGS"},
		"another directory of drop-ins":   {func(f *Facts) { f.Kubelet.ConfigArgs.Value += " --config-dir=/etc/mine/" }, "reads its drop-in files from /etc/mine"},
		"another directory from a flag":   {func(f *Facts) { f.Kubelet.Flags = []string{"--config-dir", "/etc/mine"} }, "runs with --config-dir=/etc/mine"},
		"a kubelet that knows no drop-in": {func(f *Facts) { f.Kubelet.Running, f.Kubelet.Installed = "v1.27.16", "v1.27.16" }, "v1.28 or newer"},
	} {
		t.Run(name, func(t *testing.T) {
			in := configured(t, "{maxPods: 200}")
			tc.change(&in.Facts)
			_, err := NewPlan(in)
			assert.Contains(t, requireBlocked(t, err, ReasonConfigurationUnsupported).Message, tc.says)
		})
	}
}

func TestADirectoryThatTheUnitNamesAlreadyNeedsNoDropInOfTheUnit(t *testing.T) {
	in := configured(t, "{maxPods: 200}")
	in.Facts.Kubelet.ConfigArgs.Value += " --config-dir=" + KubeletDropInDir
	in.Facts.Kubelet.Flags = []string{"--config-dir=" + KubeletDropInDir}
	p := plan(t, in)
	assert.Equal(t, []string{"Preflight", "WriteConfig", "ReloadUnits", "RestartUnit kubelet.service", "Verify"}, outline(p))
	in.Facts = carryOut(t, in.Facts, p)
	assert.True(t, func() bool { p := plan(t, in); return p.Empty() }())
	in.Spec.Kubelet = nil
	assert.NotEmpty(t, plan(t, in).Steps, "what is taken away is Refit's file")
}

func TestWhatWinsOverAConfigurationRefusesIt(t *testing.T) {
	for name, tc := range map[string]struct {
		configuration string
		change        func(k *ComponentFacts)
		says          string
	}{
		"a flag": {"{maxPods: 200}", func(k *ComponentFacts) {
			k.Flags = []string{"--max-pods=50"}
			k.FlagSources = map[string]string{"/etc/default/kubelet": `KUBELET_EXTRA_ARGS="--max-pods=50"`}
		}, "--max-pods=50 (/etc/default/kubelet)"},
		"a flag of two words":        {"{eventRecordQPS: 5}", func(k *ComponentFacts) { k.Flags = []string{"--event-qps", "7"} }, "--event-qps=7"},
		"a gate on the command line": {"{featureGates: {NodeSwap: true}}", func(k *ComponentFacts) { k.Flags = []string{"--feature-gates=A=true,NodeSwap=false"} }, "--feature-gates"},
		"a later file": {"{maxPods: 200}", func(k *ComponentFacts) {
			k.DropIns = []KubeletDropInFacts{{Path: KubeletDropInDir + "/99-mine.conf", Configuration: map[string]any{"maxPods": 50.0}}}
		}, "99-mine.conf is read after"},
	} {
		t.Run(name, func(t *testing.T) {
			in := configured(t, tc.configuration)
			tc.change(in.Facts.Kubelet)
			_, err := NewPlan(in)
			assert.Contains(t, requireBlocked(t, err, FindingOverruled).Message, tc.says)
		})
	}
	for name, change := range map[string]func(k *ComponentFacts){
		"a flag that says the same": func(k *ComponentFacts) { k.Flags = []string{"--max-pods=200"} },
		"a flag for something else": func(k *ComponentFacts) { k.Flags = []string{"--node-ip=10.0.0.1", "--v=2"} },
		"an earlier file": func(k *ComponentFacts) {
			k.DropIns = []KubeletDropInFacts{{Path: KubeletDropInDir + "/10-mine.conf", Configuration: map[string]any{"maxPods": 50.0}}}
		},
		"a later file for something": func(k *ComponentFacts) {
			k.DropIns = []KubeletDropInFacts{{Path: KubeletDropInDir + "/99-mine.conf", Configuration: map[string]any{"podPidsLimit": 50.0}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := configured(t, "{maxPods: 200}")
			change(in.Facts.Kubelet)
			assert.NotEmpty(t, plan(t, in).Steps)
		})
	}
}

func TestTheFindingsJudgeTheConfigurationToCome(t *testing.T) {
	in := configured(t, "{cgroupDriver: cgroupfs}")
	in.Facts.Runtime.CgroupDriver = "systemd"
	_, err := NewPlan(in)
	requireBlocked(t, err, FindingCgroupDriver)
}

// What somebody changed of Refit's files, and a kubelet that has not read them, is seen and mended.
func TestDriftOfADropInIsSeenAndRepaired(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(f *Facts)
		says   string
	}{
		"a value was changed": {func(f *Facts) {
			f.Kubelet.DropIns[0].Configuration["maxPods"] = 50.0
			f.Kubelet.Configuration["maxPods"] = 50.0
		}, "maxPods is 50, wanted 200"},
		"a field was added":          {func(f *Facts) { f.Kubelet.DropIns[0].Configuration["podPidsLimit"] = 50.0 }, "says something else than spec"},
		"the file is gone":           {func(f *Facts) { f.Kubelet.DropIns, f.ManagedFiles = nil, f.ManagedFiles[1:] }, "is not there"},
		"the file is broken":         {func(f *Facts) { f.Kubelet.DropIns[0] = KubeletDropInFacts{Path: KubeletDropInPath, Broken: "line 1"} }, "says something else"},
		"others may write it":        {func(f *Facts) { f.ManagedFiles[0].Mode = 0o666 }, "says something else"},
		"the unit's drop-in is gone": {func(f *Facts) { f.ManagedFiles = f.ManagedFiles[:1] }, "unit does not read"},
		"the unit's was changed":     {func(f *Facts) { f.ManagedFiles[1].SHA256 = "x" }, "is not as Refit writes it"},
		"the unit sets another file": {func(f *Facts) { f.Kubelet.ConfigArgs = &ConfigArgsFacts{Value: "--config=/etc/other.yaml"} }, "is not as Refit writes it"},
		"the kubelet is older":       {func(f *Facts) { f.ManagedFiles[0].ModTime = kubeletStart.Add(time.Second) }, "has not read"},
	} {
		t.Run(name, func(t *testing.T) {
			in := configured(t, "{maxPods: 200}")
			in.Facts = carryOut(t, in.Facts, plan(t, in))
			require.Empty(t, plan(t, in).Steps)
			tc.change(&in.Facts)
			ok, _, message := UpToDate(in.Spec, reported(in))
			assert.False(t, ok)
			assert.Contains(t, message, tc.says)
			in.Facts = carryOut(t, in.Facts, plan(t, in))
			assert.Empty(t, plan(t, in).Steps, "and is mended")
		})
	}
}

func TestAHostThatDoesNotSayHowItsKubeletIsConfiguredIsNotUpToDate(t *testing.T) {
	in := configured(t, "{maxPods: 200}")
	status := reported(in)
	status.Kubelet = nil
	ok, reason, _ := UpToDate(in.Spec, status)
	assert.False(t, ok)
	assert.Equal(t, ReasonVersionUnknown, reason)
	m := &v1alpha1.Machine{Spec: in.Spec, Status: status}
	assert.False(t, StateOf(m, nil, nil).OSPending, "nothing is planned on a guess")
}

func TestTheWorkOfAHopIsNamedByWhatItDoes(t *testing.T) {
	in := configured(t, "{maxPods: 200}")
	m := &v1alpha1.Machine{Spec: in.Spec, Status: reported(in)}
	only := v1alpha1.Target{OS: true}
	assert.Equal(t, v1alpha1.OperationReconfigure, operationType(m, only))
	assert.Equal(t, v1alpha1.OperationUpgrade, operationType(m, v1alpha1.Target{Versions: wishKubelet("v1.37.2"), OS: true}))
	m.Spec.Kubelet = nil
	m.Spec.OS = &v1alpha1.OSSpec{Reboot: v1alpha1.RebootIfRequired}
	m.Status.OS.RebootRequired = true
	assert.Equal(t, v1alpha1.OperationReboot, operationType(m, only))
	m.Spec.OS.Packages = []v1alpha1.Package{{Name: "htop"}}
	assert.Equal(t, v1alpha1.OperationUpgrade, operationType(m, only))
}

func FuzzKubeletWish(f *testing.F) {
	for _, seed := range []string{`{"maxPods":200,"evictionHard":{"memory.available":"200Mi"}}`, `{"a":{"b":[{"c":null}]}}`, `[]`, `{"authorization":{}}`, `{"healthzPort":0}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return // the API server takes nothing else
		}
		in := configured(t, "")
		in.Spec.Kubelet = &v1alpha1.KubeletSpec{Configuration: &runtime.RawExtension{Raw: raw}}
		p, err := NewPlan(in)
		if err != nil {
			require.NotNil(t, IsBlocked(err), "a refusal has a reason: %v", err)
			return
		}
		for _, s := range p.Steps {
			if s.File != nil && s.File.Path == KubeletDropInPath {
				require.NoError(t, CheckKubeletDropIn(s.File.Content))
			}
		}
		in.Facts = carryOut(t, in.Facts, p)
		again, err := NewPlan(in)
		require.NoError(t, err)
		require.Empty(t, again.Steps, "what is written is what is wished")
	})
}
