package hostfake

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// configArgs is what kubeadm's unit sets.
const configArgs = "--config=/var/lib/kubelet/config.yaml"

// configuration is what the kubelet makes of its file and of Refit's drop-ins, which it reads when it
// starts. One that was written since is younger than the kubelet.
func (f facts) configuration(out *upgrade.Facts) {
	started := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	k := out.Kubelet
	k.StartTime, k.ConfigArgs = &started, &upgrade.ConfigArgsFacts{Value: configArgs}
	k.Configuration = parsed(f.h.Files["/var/lib/kubelet/config.yaml"].Content)
	for _, path := range upgrade.KubeletDropIns {
		file, there := f.h.Files[path]
		if !there {
			continue
		}
		sum := sha256.Sum256([]byte(file.Content))
		managed := upgrade.ManagedFileFacts{Path: path, SHA256: hex.EncodeToString(sum[:]), Mode: uint32(file.Mode), ModTime: started.Add(-time.Hour)}
		if f.h.KubeletRead[path] != file.Content {
			managed.ModTime = started.Add(time.Hour)
		}
		out.ManagedFiles = append(out.ManagedFiles, managed)
	}
	if strings.Contains(f.h.KubeletRead[upgrade.KubeletUnitDropInPath], "--config-dir="+upgrade.KubeletDropInDir) {
		k.Flags = []string{configArgs, "--config-dir=" + upgrade.KubeletDropInDir}
	}
	file, there := f.h.Files[upgrade.KubeletDropInPath]
	if !there {
		return
	}
	dropIn := parsed(file.Content)
	k.DropIns = []upgrade.KubeletDropInFacts{{Path: upgrade.KubeletDropInPath, Configuration: dropIn}}
	if len(k.Flags) > 0 {
		k.Configuration = upgrade.MergeKubeletConfiguration(k.Configuration, dropIn)
	}
}

func parsed(content string) map[string]any {
	var config map[string]any
	if err := yaml.Unmarshal([]byte(content), &config); err != nil {
		panic(err) // a test's own mistake
	}
	return config
}
