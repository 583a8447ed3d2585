package planning_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"github.com/refit-dev/refit/agent/planning"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

const kubernetesURI = "https://pkgs.example/core:/stable:/v1.34/deb/"

// kubernetesHost can get releases of v1.35 from the repository of that minor.
func kubernetesHost(releases ...string) *executor {
	x := &executor{facts: upgrade.Facts{
		OS: upgrade.OSFacts{ID: "debian", VersionID: "12", Family: "apt"},
		Packages: upgrade.PackageFacts{Manager: "apt", Sources: []upgrade.SourceFacts{{
			File: "/etc/apt/sources.list.d/kubernetes.list", URI: kubernetesURI, Suites: []string{"/"}, Provides: []string{"kubeadm", "kubelet"},
		}}},
	}}
	for _, r := range releases {
		for _, name := range []string{"kubeadm", "kubelet"} {
			x.offers = append(x.offers, upgrade.Candidate{Name: name, Version: r + "-1.1", Source: strings.Replace(kubernetesURI, "v1.34", "v1.35", 1)})
		}
	}
	return x
}

func TestMinorsThatArePassedThroughAreLookedUpInTheirRepositories(t *testing.T) {
	var many []string
	for patch := range 12 {
		many = append(many, fmt.Sprintf("1.35.%d", patch))
	}
	nowhere := kubernetesHost()
	nowhere.facts.Packages.Sources = nil
	broken := kubernetesHost("1.35.9")
	broken.fail = map[string]error{"candidates": errors.New(strings.Repeat("403 gesperrt für alle ", 60))}
	for name, tc := range map[string]struct {
		host     *executor
		releases []v1alpha1.KubernetesVersion
		says     string
	}{
		"newest first":              {kubernetesHost("1.35.9", "1.35.10", "1.36.2"), []v1alpha1.KubernetesVersion{"v1.35.10", "v1.35.9"}, ""},
		"no more than are needed":   {kubernetesHost(many...), []v1alpha1.KubernetesVersion{"v1.35.11", "v1.35.10", "v1.35.9", "v1.35.8", "v1.35.7", "v1.35.6", "v1.35.5", "v1.35.4"}, ""},
		"a minor nobody has":        {kubernetesHost("1.36.2"), nil, "has no release of v1.35"},
		"a host without a source":   {nowhere, nil, "v1.35"},
		"a repository that is away": {broken, nil, "reading package sources"},
	} {
		t.Run(name, func(t *testing.T) {
			got := planning.Passed(t.Context(), tc.host, tc.host.facts, v1alpha1.MachineSpec{}, []string{"v1.35"})
			if assert.Len(t, got, 1) {
				assert.Equal(t, "v1.35", got[0].Minor)
				assert.Equal(t, tc.releases, got[0].Releases)
				assert.Contains(t, got[0].Message, tc.says)
				assert.True(t, utf8.ValidString(got[0].Message))
				assert.LessOrEqual(t, len(got[0].Message), 512, "more is refused by the API")
			}
		})
	}
}
