package plan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/preview"
	"github.com/refit-dev/refit/pkg/upgrade"
)

func TestAPackageIsAbsentOnlyWhereItWasLookedFor(t *testing.T) {
	const api = "v1.37.2"
	wants := func(kubelet, name string) string {
		return controlPlane("cp", api, api) + strings.Replace(worker("w", kubelet, api), "spec: {", "spec: {os: {packages: [{name: "+name+", state: Absent}]}, ", 1)
	}
	reports := func(objects, name string) string {
		at := strings.LastIndex(objects, "status:\n") + len("status:\n")
		return objects[:at] + "  os: {id: debian, packages: [{name: " + name + ", version: \"\"}]}\n" + objects[at:]
	}
	facts := func(kubelet, looked, installed string) string {
		text := controlPlaneFacts("w", kubelet, "", "")
		text = strings.Replace(text, "controlPlane: {apiServer: "+kubelet+", controllerManager: "+kubelet+", scheduler: "+kubelet+", etcd: }\n", "", 1)
		text = strings.Replace(text, "  sources:", "  indexes: [{uri: \"https://mirror.example\", suites: [/], packages: [kubelet"+looked+"]}]\n  sources:", 1)
		return strings.Replace(text, "{name: containerd, version", installed+"{name: containerd, version", 1)
	}
	for name, tc := range map[string]struct {
		objects, facts string
		state          preview.State
		reason, says   string
	}{
		"not looked for":                                    {wants(api, "telnet"), facts(api, "", ""), preview.StateRefused, preview.FindingCandidatesUnknown, "refit-agent facts --package telnet"},
		"looked for and not there":                          {wants(api, "telnet"), facts(api, ", telnet", ""), preview.StateUpToDate, "", ""},
		"looked for and there":                              {wants(api, "telnet"), facts(api, ", telnet", "{name: telnet, version: 0.17-44}, "), preview.StatePending, "", ""},
		"it is there":                                       {wants(api, "telnet"), facts(api, "", "{name: telnet, version: 0.17-44}, "), preview.StatePending, "", ""},
		"beside other work":                                 {wants("v1.36.3", "telnet"), facts("v1.36.3", "", ""), preview.StatePending, preview.FindingCandidatesUnknown, "refit-agent facts --package telnet"},
		"the Machine reports others":                        {wants(api, "telnet"), "", preview.StateRefused, preview.FindingCandidatesUnknown, "refit-agent facts --package telnet"},
		"the Machine reports that it is absent":             {reports(wants(api, "telnet"), "telnet"), "", preview.StateUpToDate, "", ""},
		"a protected one that was not looked for":           {wants(api, "openssh-server"), facts(api, "", ""), preview.StateRefused, upgrade.ReasonProtectedPackage, "openssh-server"},
		"a protected one that is there":                     {wants(api, "openssh-server"), facts(api, "", "{name: openssh-server, version: 1-1}, "), preview.StateRefused, upgrade.ReasonProtectedPackage, "openssh-server"},
		"a protected one that is not there":                 {wants(api, "openssh-server"), facts(api, ", openssh-server", ""), preview.StateRefused, upgrade.ReasonProtectedPackage, "openssh-server"},
		"a protected one of which the Machine says nothing": {wants(api, "openssh-server"), "", preview.StateRefused, upgrade.ReasonProtectedPackage, "openssh-server"},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := planned(t, tc.objects, tc.facts, "w")
			require.NoError(t, err)
			item := list.Items[0]
			require.Equal(t, tc.state, item.State, "%+v %+v", item.Refusal, item.Findings)
			switch {
			case tc.reason == "":
				assert.Nil(t, item.Refusal)
				assert.NotContains(t, findings(item), preview.FindingCandidatesUnknown)
			case tc.state == preview.StateRefused:
				assert.Equal(t, tc.reason, item.Refusal.Reason)
				assert.Contains(t, item.Refusal.Message, tc.says)
				assert.Empty(t, item.Hash)
			default:
				require.Contains(t, findings(item), tc.reason)
				assert.Empty(t, item.Hash)
			}
		})
	}
}
