package forecast

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/drain"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Kind of List in output.
const Kind = "DrainForecastList"

// List is what is foreseen for all nodes that were asked for.
type List struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Items      []Item `json:"items"`
	// Budgets that hold pods of these nodes, each once.
	Budgets []Budget `json:"budgets,omitempty"`
}

// Item is one node.
type Item struct {
	drain.Forecast `json:",inline"`
	// Machine of the node, "" where it has none.
	Machine string `json:"machine,omitempty"`
}

// Budget is a budget over all nodes of the list.
type Budget struct {
	drain.BudgetForecast `json:",inline"`
	// Nodes with pods of it.
	Nodes []string `json:"nodes"`
	// Shared: it does not let the pods of all these nodes go at the same time.
	Shared bool `json:"shared,omitempty"`
	// takers are the pods that take one of what it allows, and on the nodes of the same index.
	takers, on []string
}

// reasonNoCapacity is what the coordinator's gate says of the only node.
const reasonNoCapacity = "NoCapacity"

// New joins targets and their forecasts, which are in the same order.
func New(targets []Target, forecasts []drain.Forecast) List {
	l := List{APIVersion: v1alpha1.GroupVersion.String(), Kind: Kind, Items: []Item{}}
	budgets := map[string]*Budget{}
	for i, t := range targets {
		item := Item{Forecast: forecasts[i]}
		if t.Machine != nil {
			item.Machine = t.Machine.Name
			item.refuseOnlyNode(t.Machine)
		}
		l.Items = append(l.Items, item)
		for _, b := range item.Budgets {
			add(budgets, item, b)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(budgets)) {
		b := budgets[name]
		b.Shared = len(set(b.on)) > 1 && int(b.Allowed) < len(b.takers) && b.Outlook != drain.OutlookNever
		if b.Shared && b.Outlook == drain.OutlookNow {
			b.Outlook = drain.OutlookWait
		}
		if b.Outlook != drain.OutlookNow {
			l.Budgets = append(l.Budgets, *b)
		}
	}
	return l
}

// refuseOnlyNode says what the coordinator says of a node whose pods have no other place.
func (i *Item) refuseOnlyNode(m *v1alpha1.Machine) {
	if !i.OnlyNode || len(i.Pods) == 0 || i.Outlook == drain.OutlookNever || upgrade.DrainDefaults(m.Spec).SingleNode == upgrade.SingleNodeInPlace {
		return
	}
	i.Outlook, i.Reason = drain.OutlookNever, reasonNoCapacity
	i.Message = "no other node takes its pods: add or uncordon a node, or set spec.drain.singleNode to InPlace"
}

func add(budgets map[string]*Budget, item Item, b drain.BudgetForecast) {
	key := b.Namespace + "/" + b.Name
	all := budgets[key]
	if all == nil {
		all = &Budget{BudgetForecast: b}
		all.Pods = nil
		budgets[key] = all
	}
	pods := slices.Concat(all.Pods, b.Pods)
	if rank(b.Outlook) > rank(all.Outlook) {
		all.BudgetForecast = b
	}
	all.Pods = pods
	all.Nodes = append(all.Nodes, item.Node)
	for _, name := range b.Pods {
		free := slices.ContainsFunc(item.Pods, func(p drain.PodForecast) bool { // it takes nothing of what the budget allows
			return p.Namespace == b.Namespace && p.Name == name && p.Outlook == drain.OutlookNow && !p.Ready
		})
		if !free {
			all.takers, all.on = append(all.takers, name), append(all.on, item.Node)
		}
	}
}

// set has each of the sorted names once.
func set(sorted []string) []string { return slices.Compact(slices.Clone(sorted)) }

func rank(o drain.Outlook) int {
	return slices.Index([]drain.Outlook{drain.OutlookNow, drain.OutlookWait, drain.OutlookNever}, o)
}

// Never are the nodes whose drain can never succeed, with the reason.
func (l List) Never() []string {
	var out []string
	for _, i := range l.Items {
		if i.Outlook == drain.OutlookNever {
			out = append(out, fmt.Sprintf("%s (%s)", i.Node, cmp.Or(i.Reason, "Unknown")))
		}
	}
	return out
}

// words say what the budget does to the pods of its nodes.
func (b Budget) words() string {
	on := strings.Join(set(b.on), ", ")
	if b.Shared && b.Allowed > 0 {
		turn := "go one after another"
		if b.Allowed > 1 {
			turn = fmt.Sprintf("go %d at a time", b.Allowed)
		}
		return fmt.Sprintf("budget %s/%s allows %d: its pods on %s %s", b.Namespace, b.Name, b.Allowed, on, turn)
	}
	return fmt.Sprintf("%s (%s on %s)", strings.Replace(b.Message, "budget "+b.Name, "budget "+b.Namespace+"/"+b.Name, 1), strings.Join(b.takers, ", "), on)
}
