package upgrade

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/hostpolicy"
)

// configFileMode lets everybody read the drop-ins: nothing secret may be in them.
const configFileMode = 0o644

// maxConfiguration bounds what a spec may have written on a host; the longest that people have is some KiB.
const maxConfiguration = 64 << 10

// configuration compares spec.kubelet.configuration with what is effective.
func (d *differences) configuration(spec v1alpha1.MachineSpec, seen *v1alpha1.ObservedKubelet) {
	wish, err := wishOf(spec)
	switch {
	case err != nil:
		d.outdated = append(d.outdated, "spec.kubelet.configuration "+err.Error())
	case seen == nil && !wish.empty():
		d.unknown = append(d.unknown, KubeletDifferences(wish, seen)...)
	default:
		d.outdated = append(d.outdated, KubeletDifferences(wish, seen)...)
	}
}

// configurationPending says whether spec.kubelet.configuration asks for something that is not
// observed. What the host does not report is not changed on a guess.
func configurationPending(m *v1alpha1.Machine) bool {
	wish, err := wishOf(m.Spec)
	return err != nil || m.Status.Kubelet != nil && len(KubeletDifferences(wish, m.Status.Kubelet)) > 0
}

// checkConfiguration refuses a configuration that the kubelet of this hop would not read as it
// is meant, and one that a spec may not have.
func (p *planner) checkConfiguration() error {
	wish, err := wishOf(p.in.Spec)
	if err != nil {
		return refuse(ReasonConfigurationInvalid, "spec.kubelet.configuration %v", err)
	}
	if !p.in.Assignment.Target.OS {
		return nil
	}
	if k := p.in.Spec.Kubelet; k != nil && k.Configuration != nil && len(k.Configuration.Raw) > maxConfiguration {
		return refuse(ReasonConfigurationInvalid, "spec.kubelet.configuration has %d bytes, and at most %d are taken: the plan, its journal and the way back hold it too; shorten it", len(k.Configuration.Raw), maxConfiguration)
	}
	if refused := p.in.Facts.Policy.rules().KubeletFields(wish.Configuration); len(refused) > 0 {
		return refuse(ReasonConfigurationRefused, "spec.kubelet.configuration sets %s: who may tell the kubelet what, and what it runs by itself, is no spec's to change; remove it, or have the host's owner add it to kubelet.allow in %s", strings.Join(refused, ", "), hostpolicy.Path)
	}
	if port, ok := wish.Configuration["healthzPort"].(float64); ok && port == 0 {
		return refuse(ReasonConfigurationRefused, "spec.kubelet.configuration sets healthzPort to 0: nobody could see any more whether the kubelet is well; remove it, or set a port")
	}
	p.want.config = wish
	p.want.configChanges = p.configurationDiffers()
	if wish.empty() || !p.want.configChanges {
		return nil
	}
	return p.checkFields()
}

func (p *planner) configurationDiffers() bool {
	if p.in.Facts.Kubelet == nil {
		return !p.want.config.empty()
	}
	seen := p.in.Kubelet
	if seen == nil || !p.in.Estimate {
		seen = p.in.Facts.ObservedKubelet(p.in.Spec)
	}
	return len(KubeletDifferences(p.want.config, seen)) > 0
}

func (p *planner) checkFields() error {
	kubelet := p.want.kubelet
	if !kubelet.Known() {
		var err error
		if kubelet, err = p.kubeletNow(); err != nil {
			return err
		}
	}
	minor := int(kubelet.sem.Minor())
	if minor < firstKubeletFields {
		return refuse(ReasonConfigurationUnsupported, "spec.kubelet.configuration needs a kubelet of v1.%d or newer, which reads drop-in files, and this one is %s: remove it, or wish for a newer kubelet in the same spec", firstKubeletFields, kubelet.Raw())
	}
	if problems := fieldProblems(p.want.config.Configuration, minor); len(problems) > 0 {
		return refuse(ReasonConfigurationInvalid, "spec.kubelet.configuration is not what kubelet %s reads: %s; correct or remove it%s", kubelet.Raw(), strings.Join(problems, "; "), p.beyondKnown(minor))
	}
	if _, err := p.want.config.dropIn(); err != nil {
		return refuse(ReasonConfigurationInvalid, "spec.kubelet.configuration cannot be written as a file: %v; remove the odd character", err)
	}
	return p.checkUnit()
}

func (p *planner) beyondKnown(minor int) string {
	if minor <= lastKubeletFields {
		return ""
	}
	return fmt.Sprintf(" (the fields of kubelets up to v1.%d are known to this version of Refit)", lastKubeletFields)
}

// checkUnit refuses a kubelet that could not be told of the drop-in directory.
func (p *planner) checkUnit() error {
	if p.in.Estimate || p.probeFailed("kubelet.configArgs") != "" {
		return nil // not looked at, or refused for that
	}
	args := p.in.Facts.Kubelet.ConfigArgs
	switch {
	case args == nil:
		return refuse(ReasonConfigurationUnsupported, "the unit of this host's kubelet does not start it with $%s, as kubeadm's does, so it cannot be told of %s without editing what is not Refit's: add it to ExecStart, or remove spec.kubelet.configuration", kubeletConfigArgs, KubeletDropInDir)
	case args.EnvironmentFile != "":
		return refuse(ReasonConfigurationUnsupported, "%s sets %s for the kubelet and wins over every drop-in of its unit: take it out there and set it in a drop-in of the unit, or remove spec.kubelet.configuration", args.EnvironmentFile, kubeletConfigArgs)
	}
	if dir := configDirOf(strings.Fields(args.Value)); dir != "" && dir != KubeletDropInDir {
		return refuse(ReasonConfigurationUnsupported, "this host's kubelet reads its drop-in files from %s, and it reads from one directory only: move them to %s and name that in %s, or remove spec.kubelet.configuration", dir, KubeletDropInDir, kubeletConfigArgs)
	}
	if dir := ConfigDir(p.in.Facts.Kubelet.Flags); dir != "" && dir != KubeletDropInDir {
		return refuse(ReasonConfigurationUnsupported, "this host's kubelet runs with --config-dir=%s, which does not come from %s, and it reads from one directory only: move its files to %s and take the flag away, or remove spec.kubelet.configuration", dir, kubeletConfigArgs, KubeletDropInDir)
	}
	return nil
}

// configuration writes or removes the two drop-ins. The directory is there before the kubelet
// is told of it, and it stays when it is told no more: one that is named and missing stops it.
func (p *planner) configuration() error {
	config := Step{Kind: StepWriteConfig, File: &FileChange{Path: KubeletDropInPath, Mode: configFileMode, Remove: true}}
	unit := Step{Kind: StepWriteConfig, File: &FileChange{Path: KubeletUnitDropInPath, Mode: configFileMode, Remove: true}}
	p.disturb(p.configurationDisruption())
	if p.want.config.empty() {
		p.add(unit, config)
		return nil
	}
	content, err := p.want.config.dropIn()
	if err != nil {
		return err
	}
	if p.in.Facts.dropInDigest() != p.want.config.digest() {
		config.File = &FileChange{Path: KubeletDropInPath, Mode: configFileMode, Content: content}
		p.add(config)
	}
	if state := p.in.Facts.unitDropInState(); state == UnitDropInAbsent || state == UnitDropInChanged {
		unit.File = &FileChange{Path: KubeletUnitDropInPath, Mode: configFileMode, Content: UnitDropIn(p.configArgs())}
		p.add(unit)
	}
	p.judgeBy(p.want.config.Configuration)
	return nil
}

func (p *planner) configArgs() string {
	if args := p.in.Facts.Kubelet.ConfigArgs; args != nil {
		return args.Value
	}
	return kubeadmConfigArgs
}

// judgeBy lets the findings look at the configuration that is to come.
func (p *planner) judgeBy(config map[string]any) {
	k := *p.in.Facts.Kubelet
	if k.Configuration != nil {
		k.Configuration = MergeKubeletConfiguration(k.Configuration, config)
	}
	p.in.Facts.Kubelet = &k
}

// configurationDisruption is that of the fields that change: those that are not what is wished,
// and those that Refit's drop-in sets no more.
func (p *planner) configurationDisruption() v1alpha1.Disruption {
	k := p.in.Facts.Kubelet
	effective := k.effective()
	changed := map[string]bool{}
	for name, want := range p.want.config.Configuration {
		changed[name] = len(settingDifferences(map[string]any{name: want}, effective, "")) > 0 || p.in.Facts.dropInsUnread()
	}
	if own := k.ownDropIn(); own != nil {
		for name, is := range own.Configuration {
			want, kept := p.want.config.Configuration[name]
			changed[name] = changed[name] || !kept && name != "apiVersion" && name != "kind" || kept && !reflect.DeepEqual(is, want)
		}
	}
	if ConfigDir(k.Flags) == "" && len(k.DropIns) > oneIf(k.ownDropIn() != nil) {
		return v1alpha1.DisruptionDrain // drop-ins of somebody else's, which nothing has read so far
	}
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		if changed[name] && !restartFields[name] {
			return v1alpha1.DisruptionDrain
		}
	}
	return v1alpha1.DisruptionRestart
}
