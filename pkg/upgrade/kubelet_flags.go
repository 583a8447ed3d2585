package upgrade

import (
	"fmt"
	"maps"
	"strings"
)

// settingFlag is a flag of the kubelet that sets a field of its configuration. Flags win over every file.
type settingFlag struct{ name, value, field string }

// fieldsOfFlags are the fields whose flags have another name; the others are alike but for dashes and case.
var fieldsOfFlags = map[string]string{
	"event-qps": "eventRecordQPS", "registry-qps": "registryPullQPS", "kernel-memcg-notification": "kernelMemcgNotification",
	"image-gc-high-threshold": "imageGCHighThresholdPercent", "image-gc-low-threshold": "imageGCLowThresholdPercent",
	"minimum-image-ttl-duration": "imageMinimumGCAge", "reserved-cpus": "reservedSystemCPUs", "experimental-allocatable-ignore-eviction": "",
	"cluster-dns": "clusterDNS", "pod-max-pids": "podPidsLimit", "allowed-unsafe-sysctls": "allowedUnsafeSysctls",
	"v": "logging", "logging-format": "logging", "log-flush-frequency": "logging", "vmodule": "logging",
}

// fieldsByFlag are the fields of the top level by their names in lower case.
var fieldsByFlag = func() map[string]string {
	out := map[string]string{}
	for path := range kubeletFields {
		if !strings.ContainsAny(path, ".[{") {
			out[strings.ToLower(path)] = path
		}
	}
	return out
}()

// settingFlags are the flags of the running kubelet that its configuration has a field for.
func (c *ComponentFacts) settingFlags() []settingFlag {
	var out []settingFlag
	for i, word := range c.Flags {
		name, found := strings.CutPrefix(word, "--")
		if !found {
			continue
		}
		name, value, hasValue := strings.Cut(name, "=")
		if !hasValue && i+1 < len(c.Flags) && !strings.HasPrefix(c.Flags[i+1], "-") {
			value = c.Flags[i+1]
		}
		field, special := fieldsOfFlags[name]
		if !special {
			field = fieldsByFlag[strings.ReplaceAll(name, "-", "")]
		}
		if field != "" {
			out = append(out, settingFlag{name, value, field})
		}
	}
	return out
}

// over is what a flag makes of the value that files give its field: its own where the two
// say the same, else the flag as it stands. Feature gates are taken one by one.
func (s settingFlag) over(have any) any {
	if s.field == "logging" {
		return have // which part of it is set by which flag is not looked into
	}
	if s.field == "featureGates" {
		gates, _ := have.(map[string]any)
		gates = maps.Clone(gates)
		if gates == nil {
			gates = map[string]any{}
		}
		for pair := range strings.SplitSeq(s.value, ",") {
			if name, value, ok := strings.Cut(pair, "="); ok {
				gates[strings.TrimSpace(name)] = strings.TrimSpace(value) == "true"
			}
		}
		return gates
	}
	if have != nil && flagText(have) == s.value {
		return have
	}
	return fmt.Sprintf("--%s=%s", s.name, s.value)
}

// flagText is how a value of the configuration would stand in a flag.
func flagText(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case []any:
		texts := make([]string, 0, len(v))
		for _, item := range v {
			texts = append(texts, flagText(item))
		}
		return strings.Join(texts, ",")
	}
	return settingText(value)
}
