package upgrade

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// kubeletField is the type of a field of the kubelet's configuration, and the minors of v1 that have it so.
type kubeletField struct {
	kind        string
	first, last int
}

// knownKubeletMinor is the minor whose types judge a configuration: those of a later one than is
// known are taken for those of the last.
func knownKubeletMinor(minor int) int { return min(minor, lastKubeletFields) }

// fieldProblems are what a kubelet of some minor of v1 could not read in a configuration,
// sorted. A kubelet reads a drop-in file without complaint where it does not know a field.
func fieldProblems(config map[string]any, minor int) []string {
	c := &fieldCheck{minor: knownKubeletMinor(minor)}
	c.object(config, "", "")
	return c.problems
}

// fieldCheck walks a configuration. Places are as a person reads them, paths as the table has them.
type fieldCheck struct {
	minor    int
	problems []string
}

func (c *fieldCheck) say(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

func (c *fieldCheck) object(config map[string]any, place, path string) {
	for _, name := range slices.Sorted(maps.Keys(config)) {
		at, under := name, name
		if place != "" {
			at, under = place+"."+name, path+"."+name
		}
		c.value(config[name], at, under)
	}
}

func (c *fieldCheck) value(value any, place, path string) {
	kind := c.kind(path)
	if kind == "" {
		c.say("%s", c.unknown(place, path))
		return
	}
	switch v := value.(type) {
	case nil:
		c.say("%s is null: leave the field out", place)
	case map[string]any:
		c.below(v, kind, place, path)
	case []any:
		if kind != "list" {
			c.say("%s is a list, and the kubelet wants %s", place, article(kind))
			return
		}
		for i, item := range v {
			c.value(item, fmt.Sprintf("%s[%d]", place, i), path+"[]")
		}
	default:
		if wrong := scalarProblem(value, kind); wrong != "" {
			c.say("%s is %s, and the kubelet wants %s", place, wrong, article(kind))
		}
	}
}

func (c *fieldCheck) below(value map[string]any, kind, place, path string) {
	switch kind {
	case "object":
		c.object(value, place, path)
	case "map":
		for _, key := range slices.Sorted(maps.Keys(value)) {
			c.value(value[key], place+"."+key, path+"{}")
		}
	default:
		c.say("%s has fields of its own, and the kubelet wants %s", place, article(kind))
	}
}

// kind is the type of a path in the minor, "" where it does not have it.
func (c *fieldCheck) kind(path string) string {
	for _, f := range kubeletFields[path] {
		if f.first <= c.minor && c.minor <= f.last {
			return f.kind
		}
	}
	return ""
}

// unknown says of a field that is not there whether it once was, or will be.
func (c *fieldCheck) unknown(place, path string) string {
	for _, f := range kubeletFields[path] {
		if c.minor < f.first {
			return fmt.Sprintf("%s is known to kubelets from v1.%d on", place, f.first)
		}
	}
	if spans := kubeletFields[path]; len(spans) > 0 {
		return fmt.Sprintf("%s is known to kubelets up to v1.%d", place, spans[len(spans)-1].last)
	}
	return place + " is no field of the kubelet's configuration"
}

func article(kind string) string {
	switch kind {
	case "int", "int32", "int64":
		return "a whole number"
	case "float":
		return "a number"
	case "bool":
		return "true or false"
	case "string":
		return "a text"
	case "duration":
		return "a duration such as 30s"
	case "quantity":
		return "a quantity such as 100Mi"
	case "list":
		return "a list"
	}
	return "fields of its own"
}

// scalarProblem is what is wrong with a value for its type; "" for nothing.
func scalarProblem(value any, kind string) string {
	text, isText := value.(string)
	shown := fmt.Sprintf("%v", value)
	if isText {
		shown = strconv.Quote(text)
	}
	if !fits(value, kind) {
		return shown
	}
	return ""
}

// fits says whether a value is one of a type.
func fits(value any, kind string) bool {
	text, isText := value.(string)
	number, isNumber := value.(float64)
	_, isBool := value.(bool)
	whole := isNumber && number == math.Trunc(number)
	switch kind {
	case "string":
		return isText
	case "bool":
		return isBool
	case "float":
		return isNumber
	case "int", "int64":
		return whole && math.Abs(number) <= 1<<53
	case "int32":
		return whole && number >= math.MinInt32 && number <= math.MaxInt32
	case "duration":
		_, err := time.ParseDuration(text)
		return isText && err == nil
	case "quantity":
		_, err := resource.ParseQuantity(text)
		return isText && err == nil || isNumber
	}
	return false
}

// restartFields are those that a restarted kubelet takes up while its pods stay as they are:
// they are not asked when a pod is admitted, and nothing in a pod depends on them. A
// restarted kubelet admits its running pods anew; for every other field they leave first.
var restartFields = map[string]bool{
	"logging": true, "tracing": true, "showHiddenMetricsForVersion": true, "volumeStatsAggPeriod": true,
	"containerLogMaxSize": true, "containerLogMaxFiles": true, "containerLogMaxWorkers": true, "containerLogMonitorInterval": true,
	"imageGCHighThresholdPercent": true, "imageGCLowThresholdPercent": true, "imageMinimumGCAge": true, "imageMaximumGCAge": true,
	"serializeImagePulls": true, "maxParallelImagePulls": true, "registryPullQPS": true, "registryBurst": true,
	"eventRecordQPS": true, "eventBurst": true, "kubeAPIQPS": true, "kubeAPIBurst": true,
	"nodeStatusUpdateFrequency": true, "nodeStatusReportFrequency": true, "nodeStatusMaxImages": true, "nodeLeaseDurationSeconds": true,
	"syncFrequency": true, "fileCheckFrequency": true, "httpCheckFrequency": true, "streamingConnectionIdleTimeout": true,
	"shutdownGracePeriod": true, "shutdownGracePeriodCriticalPods": true, "shutdownGracePeriodByPodPriority": true,
	"enableDebuggingHandlers": true, "enableProfilingHandler": true, "enableDebugFlagsHandler": true, "enableContentionProfiling": true,
	"enableSystemLogHandler": true, "enableSystemLogQuery": true,
}
