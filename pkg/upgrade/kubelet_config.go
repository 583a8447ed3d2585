package upgrade

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// Where spec.kubelet.configuration goes. The kubelet reads every .conf file of the directory in
// lexical order, after its own configuration; a directory that is named and missing stops it.
const (
	KubeletDropInDir      = "/etc/kubernetes/kubelet.conf.d"
	KubeletDropInPath     = KubeletDropInDir + "/90-refit.conf"
	KubeletUnitDropInPath = "/etc/systemd/system/kubelet.service.d/90-refit.conf"

	kubeletAPIVersion, kubeletKind = "kubelet.config.k8s.io/v1beta1", "KubeletConfiguration"
	kubeletConfigArgs              = "KUBELET_CONFIG_ARGS"
	kubeletDropInAlpha             = "KUBELET_CONFIG_DROPIN_DIR_ALPHA"
	// kubeadmConfigArgs is what kubeadm's unit sets, where a host has not been looked at.
	kubeadmConfigArgs = "--config=/var/lib/kubelet/config.yaml"
)

// How Refit's drop-in of the kubelet's unit is.
const (
	UnitDropInAbsent    = ""
	UnitDropInAsNeeded  = "AsNeeded"
	UnitDropInChanged   = "Changed"
	UnitDropInNotNeeded = "NotNeeded"
)

// KubeletWish is what is to be effective of spec.kubelet.configuration. An empty one wants
// nothing of Refit's left on the host.
type KubeletWish struct {
	Configuration map[string]any `json:"configuration,omitempty"`
}

// wishOf reads spec.kubelet.configuration.
func wishOf(spec v1alpha1.MachineSpec) (KubeletWish, error) {
	if spec.Kubelet == nil || spec.Kubelet.Configuration == nil {
		return KubeletWish{}, nil
	}
	config, err := parseRaw(spec.Kubelet.Configuration)
	if err != nil {
		return KubeletWish{}, fmt.Errorf("is no object: %w", err)
	}
	for name, want := range map[string]string{"apiVersion": kubeletAPIVersion, "kind": kubeletKind} {
		if got, there := config[name]; there && got != want {
			return KubeletWish{}, fmt.Errorf("has %s %v: leave it out, or write %s", name, got, want)
		}
		delete(config, name)
	}
	return KubeletWish{Configuration: config}, nil
}

func parseRaw(raw *runtime.RawExtension) (map[string]any, error) {
	var config map[string]any
	if raw == nil || len(raw.Raw) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(raw.Raw, &config); err != nil {
		return nil, fmt.Errorf("is no JSON object: %w", err)
	}
	return config, nil
}

// empty says that nothing is wished for.
func (w KubeletWish) empty() bool { return len(w.Configuration) == 0 }

// DropIn is the content of the drop-in file.
func (w KubeletWish) dropIn() (string, error) {
	config := maps.Clone(w.Configuration)
	config["apiVersion"], config["kind"] = kubeletAPIVersion, kubeletKind
	text, err := yaml.Marshal(config)
	if err != nil {
		return "", fmt.Errorf("writing the kubelet's configuration: %w", err)
	}
	return "# Written by Refit from spec.kubelet.configuration; changes here are undone.\n" + string(text), nil
}

// digest is that of what a drop-in says, however it is written down; "" when it says nothing.
func (w KubeletWish) digest() string {
	if w.empty() {
		return ""
	}
	data, err := json.Marshal(w.Configuration)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// UnitDropIn is the drop-in of the kubelet's unit. It repeats what the variable is set to. The
// second variable lets kubelets before v1.30 take the flag; later ones do not look at it.
func UnitDropIn(configArgs string) string {
	return "# Written by Refit for spec.kubelet.configuration; changes here are undone.\n[Service]\n" +
		"Environment=" + strconv.Quote(kubeletConfigArgs+"="+strings.TrimSpace(configArgs+" --config-dir="+KubeletDropInDir)) + "\n" +
		"Environment=" + kubeletDropInAlpha + "=true\n"
}

// CheckKubeletDropIn says what is wrong with a drop-in file of the kubelet. What it may set is the host's policy.
func CheckKubeletDropIn(content string) error {
	var config map[string]any
	if err := yaml.UnmarshalStrict([]byte(content), &config); err != nil {
		return fmt.Errorf("the drop-in is no YAML: %w", err)
	}
	return nil
}

// ownVariable sets one of the two variables that Refit writes, and no other in the same line.
var ownVariable = regexp.MustCompile(`^Environment=(` + kubeletDropInAlpha + `=true|"` + kubeletConfigArgs + `=(?:[^"\\]|\\.)*")$`)

// CheckUnitDropIn says what in a drop-in of a unit no plan may write: anything but a variable of its own.
func CheckUnitDropIn(content string) error {
	for line := range strings.Lines(content) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") || line == "[Service]" {
			continue
		}
		if !ownVariable.MatchString(line) || strings.HasSuffix(line, `\`) {
			return fmt.Errorf("the drop-in sets more than the variables %s and %s of the unit's environment", kubeletConfigArgs, kubeletDropInAlpha)
		}
	}
	return nil
}

// MergeKubeletConfiguration is what a kubelet makes of its configuration and one drop-in:
// objects and maps are merged, everything else is replaced, and null takes away.
func MergeKubeletConfiguration(base, over map[string]any) map[string]any {
	out := maps.Clone(base)
	if out == nil {
		out = map[string]any{}
	}
	for name, value := range over {
		below, isMap := value.(map[string]any)
		switch {
		case value == nil:
			delete(out, name)
		case isMap:
			under, _ := out[name].(map[string]any)
			out[name] = MergeKubeletConfiguration(under, below)
		default:
			out[name] = value
		}
	}
	return out
}

// ObservedKubelet is how the kubelet is configured, as the Machine reports it; nil on a host without one.
func (f *Facts) ObservedKubelet(spec v1alpha1.MachineSpec) *v1alpha1.ObservedKubelet {
	k := f.Kubelet
	if k == nil {
		return nil
	}
	out := &v1alpha1.ObservedKubelet{DropIn: f.dropInDigest(), UnitDropIn: f.unitDropInState(), RestartPending: f.dropInsUnread()}
	wish, err := wishOf(spec)
	if err != nil || wish.empty() {
		return out
	}
	effective := restricted(wish.Configuration, k.effective())
	if data, err := json.Marshal(effective); err == nil && len(effective) > 0 {
		out.Configuration = &runtime.RawExtension{Raw: data}
	}
	return out
}

func (c *ComponentFacts) ownDropIn() *KubeletDropInFacts {
	for i := range c.DropIns {
		if c.DropIns[i].Path == KubeletDropInPath {
			return &c.DropIns[i]
		}
	}
	return nil
}

// dropInDigest is that of what Refit's drop-in says, or one that no wish has.
func (f *Facts) dropInDigest() string {
	own := f.Kubelet.ownDropIn()
	if own == nil {
		return ""
	}
	if own.Broken != "" {
		return "broken"
	}
	if m := f.managed(KubeletDropInPath); m != nil && m.Mode != configFileMode {
		return fmt.Sprintf("mode %#o", m.Mode)
	}
	config := maps.Clone(own.Configuration)
	delete(config, "apiVersion")
	delete(config, "kind")
	return firstOf(KubeletWish{Configuration: config}.digest(), "empty")
}

func (f *Facts) managed(path string) *ManagedFileFacts {
	for i := range f.ManagedFiles {
		if f.ManagedFiles[i].Path == path {
			return &f.ManagedFiles[i]
		}
	}
	return nil
}

func (f *Facts) unitDropInState() string {
	own, args := f.managed(KubeletUnitDropInPath), f.Kubelet.ConfigArgs
	switch {
	case own == nil && args != nil && configDirOf(strings.Fields(args.Value)) == KubeletDropInDir:
		return UnitDropInNotNeeded
	case own == nil:
		return UnitDropInAbsent
	case args != nil && own.SHA256 == contentDigest(UnitDropIn(args.Value)) && own.Mode == configFileMode:
		return UnitDropInAsNeeded
	}
	return UnitDropInChanged
}

// dropInsUnread says that one of Refit's drop-ins is younger than the kubelet that runs.
func (f *Facts) dropInsUnread() bool {
	k := f.Kubelet
	if k.StartTime == nil {
		return false
	}
	return slices.ContainsFunc(f.ManagedFiles, func(m ManagedFileFacts) bool {
		return slices.Contains(KubeletDropIns, m.Path) && m.ModTime.After(*k.StartTime)
	})
}

// KubeletDropIns are the two files that Refit keeps for spec.kubelet.configuration.
var KubeletDropIns = []string{KubeletDropInPath, KubeletUnitDropInPath}

func contentDigest(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

// ConfigDir is the directory of drop-in files that the flags of a kubelet name; the last one counts.
func ConfigDir(flags []string) string { return configDirOf(flags) }

func configDirOf(flags []string) string {
	dir := ""
	for i, flag := range flags {
		if value, ok := strings.CutPrefix(flag, "--config-dir="); ok {
			dir = value
		}
		if flag == "--config-dir" && i+1 < len(flags) {
			dir = flags[i+1]
		}
	}
	return strings.TrimSuffix(dir, "/")
}

// restricted is the part of what is effective that a wish names.
func restricted(wish, effective map[string]any) map[string]any {
	out := map[string]any{}
	for name, want := range wish {
		have, there := effective[name]
		if !there {
			continue
		}
		below, isMap := want.(map[string]any)
		under, both := have.(map[string]any)
		if isMap && both {
			part := restricted(below, under)
			if len(part) == 0 && len(below) > 0 {
				continue
			}
			have = part
		}
		out[name] = have
	}
	return out
}

// KubeletDifferences says where the kubelet's configuration is not as spec wants it; nil seen
// is a host that does not say.
func KubeletDifferences(wish KubeletWish, seen *v1alpha1.ObservedKubelet) []string {
	if wish.empty() {
		if seen != nil && (seen.DropIn != "" || seen.UnitDropIn == UnitDropInAsNeeded || seen.UnitDropIn == UnitDropInChanged) {
			return []string{"Refit's drop-in of the kubelet's configuration is on the host, wanted none"}
		}
		return nil
	}
	if seen == nil {
		return []string{"the kubelet's configuration is not reported"}
	}
	have, err := parseRaw(seen.Configuration)
	if err != nil {
		return []string{"the kubelet's configuration that is reported cannot be read"}
	}
	out := settingDifferences(wish.Configuration, have, "")
	switch {
	case seen.DropIn == "":
		out = append(out, "the kubelet's drop-in "+KubeletDropInPath+" is not there")
	case seen.DropIn != wish.digest():
		out = append(out, "the kubelet's drop-in "+KubeletDropInPath+" says something else than spec")
	}
	switch seen.UnitDropIn {
	case UnitDropInAbsent:
		out = append(out, "the kubelet's unit does not read "+KubeletDropInDir)
	case UnitDropInChanged:
		out = append(out, "the drop-in of the kubelet's unit "+KubeletUnitDropInPath+" is not as Refit writes it")
	}
	if seen.RestartPending {
		out = append(out, "the kubelet has not read Refit's drop-ins since they changed")
	}
	return out
}

func settingDifferences(wish, have map[string]any, place string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(wish)) {
		want, is := wish[name], have[name]
		below, isMap := want.(map[string]any)
		under, both := is.(map[string]any)
		switch {
		case isMap && (both || is == nil):
			out = append(out, settingDifferences(below, under, place+name+".")...)
		case !reflect.DeepEqual(want, is):
			out = append(out, fmt.Sprintf("the kubelet's %s is %s, wanted %s", place+name, settingText(is), settingText(want)))
		}
	}
	return out
}

func settingText(value any) string {
	if value == nil {
		return "unset"
	}
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(data)
}

// effective is what the kubelet's files make of its configuration with its flags, which win, on top.
func (c *ComponentFacts) effective() map[string]any {
	out := maps.Clone(c.Configuration)
	if out == nil {
		out = map[string]any{}
	}
	for _, flag := range c.settingFlags() {
		out[flag.field] = flag.over(out[flag.field])
	}
	return out
}
