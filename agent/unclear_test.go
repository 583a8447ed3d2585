package agent

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/refit-dev/refit/pkg/upgrade"
)

func controlPlaneHost() upgrade.Facts {
	return upgrade.Facts{
		Kubelet: &upgrade.ComponentFacts{Active: true, Running: "v1.37.2"},
		Runtime: &upgrade.RuntimeFacts{Name: "containerd", Running: "2.4.2", Installed: "2.4.2"},
		Control: &upgrade.ControlFacts{
			Manifests: map[string]string{"kube-apiserver": "v1.37.2", "kube-controller-manager": "v1.37.2", "kube-scheduler": "v1.37.2", "etcd": "3.7.0-0"},
			APIServer: "v1.37.2", ControllerManager: "v1.37.2", Scheduler: "v1.37.2", Etcd: "3.7.0-0",
		},
	}
}

func TestWhatCouldNotBeFoundOutIsLookedAtAgainSoon(t *testing.T) {
	for name, edit := range map[string]func(*upgrade.Facts){
		"an API server that is being restarted":      func(f *upgrade.Facts) { f.Control.APIServer = "" },
		"a controller manager that is being started": func(f *upgrade.Facts) { f.Control.ControllerManager = "" },
		"a scheduler that is being started":          func(f *upgrade.Facts) { f.Control.Scheduler = "" },
		"an etcd that is being started":              func(f *upgrade.Facts) { f.Control.Etcd = "" },
		"a kubelet that does not answer":             func(f *upgrade.Facts) { f.Kubelet.Running = "" },
		"a runtime that does not answer":             func(f *upgrade.Facts) { f.Runtime.Running = "" },
		"any probe that failed": func(f *upgrade.Facts) {
			f.Problems = []upgrade.Problem{{Field: "mounts", Message: "stale file handle"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := New(Deps{})
			facts := controlPlaneHost()
			edit(&facts)
			a.learn(facts, nil)
			assert.LessOrEqual(t, a.probing.due.Sub(a.now()), 2*a.Timing.Settle)
			a.learn(controlPlaneHost(), nil)
			assert.Greater(t, a.probing.due.Sub(a.now()), 20*time.Minute, "a host of which all is known is left alone")
		})
	}
}

func TestWhatStaysUnknownIsLookedAtEverMoreRarely(t *testing.T) {
	a := New(Deps{})
	facts := controlPlaneHost()
	facts.Problems = []upgrade.Problem{{Field: "mounts", Message: "stale file handle"}}
	for range 12 {
		a.learn(facts, nil)
	}
	assert.Greater(t, a.probing.due.Sub(a.now()), a.Timing.RetryMax/3)
}

func TestWhatIsKnownNotToRunIsNotUnclear(t *testing.T) {
	f := controlPlaneHost()
	f.Control = nil
	f.Kubelet = &upgrade.ComponentFacts{Installed: "v1.37.2"}
	f.Runtime = &upgrade.RuntimeFacts{Name: "containerd", Installed: "2.4.2", Stopped: true}
	assert.False(t, unclear(&f))
}
