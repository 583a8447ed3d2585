package metrics

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

const (
	// most is how many values one label takes in a namespace. What hosts report goes into
	// labels, and a host that lies must not fill Prometheus.
	most = 32
	// longest value of a label.
	longest = 64
	// other is the value that stands for the rest.
	other = "other"
)

// bounded keeps the values that most machines have, and counts the rest together.
func bounded(counts map[string]int) map[string]int {
	out := make(map[string]int, min(len(counts), most+1))
	values := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	for i, v := range values {
		if i >= most || len(v) > longest {
			out[other] += counts[v]
			continue
		}
		out[strings.ToValidUTF8(v, "?")] += counts[v]
	}
	return out
}
