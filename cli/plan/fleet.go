package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/manifest"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// machine is a Machine and where it comes from.
type machine struct {
	v1alpha1.Machine
	// object is set where it comes from a file.
	object *manifest.Object
	// live is the Machine in the cluster, nil where there is none.
	live  *v1alpha1.Machine
	facts *factsOf
}

type factsOf struct {
	upgrade.Facts
	object *manifest.Object
}

// Fleet is everything that plans are made from.
type Fleet struct {
	machines []*machine
	pools    []*v1alpha1.MachineDeployment
	nodes    []*corev1.Node
	findings []upgrade.Finding
}

// Kinds that files of objects may hold, and files of facts.
var (
	Kinds      = []string{"Machine", "MachineDeployment", "MachineDisruptionBudget", "Ledger", "Node", manifest.KindFacts}
	FactsKinds = []string{manifest.KindFacts, "Machine"}
)

// AddLive takes in what the cluster has.
func (f *Fleet) AddLive(machines []v1alpha1.Machine, pools []v1alpha1.MachineDeployment, nodes []corev1.Node) {
	for i := range machines {
		m := &machines[i]
		f.machines = append(f.machines, &machine{Machine: *m.DeepCopy(), live: m})
	}
	for i := range pools {
		f.pools = append(f.pools, &pools[i])
	}
	for i := range nodes {
		f.nodes = append(f.nodes, &nodes[i])
	}
}

// AddObjects lays the objects of files over what is there: spec and labels are the
// file's, the status is the cluster's where the cluster has the object.
func (f *Fleet) AddObjects(objects []manifest.Object) error {
	var facts []*factsOf
	for i := range objects {
		o := &objects[i]
		var err error
		switch o.Kind {
		case "Machine":
			err = f.addMachine(o)
		case "MachineDeployment":
			err = f.addPool(o)
		case "Node":
			n := &corev1.Node{}
			if err = o.Decode(n); err == nil {
				f.nodes = append(slices.DeleteFunc(f.nodes, func(old *corev1.Node) bool { return old.Name == n.Name }), n)
			}
		case manifest.KindFacts:
			of := &factsOf{object: o}
			err = o.Decode(&of.Facts)
			facts = append(facts, of)
		}
		if err != nil {
			return err
		}
	}
	return f.match(facts)
}

func (f *Fleet) addMachine(o *manifest.Object) error {
	m := &machine{object: o}
	if err := o.Decode(&m.Machine); err != nil {
		return err
	}
	m.Namespace = o.Meta.Namespace
	at := slices.IndexFunc(f.machines, func(old *machine) bool { return old.Name == m.Name && old.Namespace == m.Namespace })
	if at < 0 {
		f.machines = append(f.machines, m)
		return nil
	}
	m.live = f.machines[at].live
	m.Status, m.UID, m.Generation, m.ManagedFields = m.live.Status, m.live.UID, m.live.Generation, m.live.ManagedFields
	f.machines[at] = m
	return nil
}

func (f *Fleet) addPool(o *manifest.Object) error {
	d := &v1alpha1.MachineDeployment{}
	if err := o.Decode(d); err != nil {
		return err
	}
	d.Namespace = o.Meta.Namespace
	f.pools = append(slices.DeleteFunc(f.pools, func(old *v1alpha1.MachineDeployment) bool {
		return old.Name == d.Name && old.Namespace == d.Namespace
	}), d)
	return nil
}

// AddFacts takes in files of facts. A Machine among them stands for what it reports.
func (f *Fleet) AddFacts(objects []manifest.Object) error {
	var facts []*factsOf
	for i := range objects {
		o := &objects[i]
		if o.Kind == "Machine" {
			if err := f.addStatus(o); err != nil {
				return err
			}
			continue
		}
		of := &factsOf{object: o}
		if err := o.Decode(&of.Facts); err != nil {
			return err
		}
		facts = append(facts, of)
	}
	return f.match(facts)
}

func (f *Fleet) addStatus(o *manifest.Object) error {
	reported := &v1alpha1.Machine{}
	if err := o.Decode(reported); err != nil {
		return err
	}
	for _, m := range f.machines {
		if m.Name == o.Meta.Name && m.Namespace == o.Meta.Namespace {
			return layOver(m, o, reported.Status)
		}
	}
	return o.Errorf("metadata.name", "there is no Machine %s/%s that this status could be of", o.Meta.Namespace, o.Meta.Name)
}

// layOver lays a status over what is known: what it does not name stays. One that names
// nothing says nothing of its host, and was hardly meant.
func layOver(m *machine, o *manifest.Object, status v1alpha1.MachineStatus) error {
	given, err := fields(status)
	if err != nil {
		return err
	}
	if len(given) == 0 {
		return o.Errorf("status", "this Machine has no status, so it says nothing of its host: give what kubectl get machine %s -o yaml prints once its agent has reported, or what refit-agent facts prints there", m.Name)
	}
	known, err := fields(m.Status)
	if err != nil {
		return err
	}
	m.Status = v1alpha1.MachineStatus{}
	return convert(overlay(known, given), &m.Status)
}

// overlay is below with what above names in its place; lists are taken whole.
func overlay(below, above map[string]any) map[string]any {
	out := maps.Clone(below)
	for key, value := range above {
		over, isMap := value.(map[string]any)
		under, both := out[key].(map[string]any)
		if isMap && both {
			value = overlay(under, over)
		}
		out[key] = value
	}
	return out
}

// match gives each facts to its Machine: by the name of the node in the kubelet's
// certificate, else by the machine id that the Machine reports, else by the hostname,
// whole or up to its first dot.
func (f *Fleet) match(all []*factsOf) error {
	var errs manifest.Errors
	for _, facts := range all {
		m, by := f.machineOf(facts)
		switch {
		case m == nil:
			errs = append(errs, facts.object.Errorf("host", "no Machine belongs to these facts: %s", by))
		case m.facts != nil:
			errs = append(errs, facts.object.Errorf("host", "these are facts of Machine %s, and so are those at %s:%d: keep one", m.Name, m.facts.object.File, m.facts.object.Line))
		default:
			m.facts = facts
			errs = append(errs, roles(m)...)
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return errs
}

// machineOf is the machine of some facts, or why there is none.
func (f *Fleet) machineOf(facts *factsOf) (*machine, string) {
	short, _, _ := strings.Cut(facts.Host.Hostname, ".")
	called := func(name string) func(*machine) bool {
		return func(m *machine) bool { return name != "" && m.Name == name }
	}
	node := ""
	if facts.Node != nil {
		node = facts.Node.Name
	}
	reports := func(m *machine) bool {
		return facts.Host.MachineID != "" && m.Status.Host != nil && m.Status.Host.MachineID == facts.Host.MachineID
	}
	for _, fits := range []func(*machine) bool{called(node), reports, called(facts.Host.Hostname), called(short)} {
		switch fitting := f.all(fits); len(fitting) {
		case 0:
		case 1:
			return fitting[0], ""
		default:
			if named := f.all(func(m *machine) bool { return fits(m) && reports(m) }); len(named) == 1 {
				return named[0], ""
			}
			return nil, "there are several that could be it, " + strings.Join(qualified(fitting), " and ") + ": plan for one namespace, and give its facts alone"
		}
	}
	names := slices.DeleteFunc([]string{node, facts.Host.Hostname, short}, func(name string) bool { return name == "" })
	slices.Sort(names)
	if names = slices.Compact(names); len(names) == 0 {
		names = []string{"a node or host (the facts have neither node.name nor host.hostname)"}
	}
	return nil, "none is named after " + strings.Join(names, " or ") + ", and none reports this machine id"
}

func (f *Fleet) all(fits func(*machine) bool) []*machine {
	return slices.DeleteFunc(slices.Clone(f.machines), func(m *machine) bool { return !fits(m) })
}

func qualified(machines []*machine) []string {
	names := make([]string, 0, len(machines))
	for _, m := range machines {
		names = append(names, m.Namespace+"/"+m.Name)
	}
	slices.Sort(names)
	return names
}

// roles refuses a role that the host of the facts does not have.
func roles(m *machine) manifest.Errors {
	message := upgrade.RoleContradiction(m.Spec.Roles, &m.facts.Facts)
	switch {
	case message == "":
		return nil
	case m.object == nil:
		return manifest.Errors{m.facts.object.Errorf("controlPlane", "Machine %s: spec.roles: %s", m.Name, message)}
	}
	return manifest.Errors{m.object.Errorf("spec.roles", "%s (facts: %s:%d)", message, m.facts.object.File, m.facts.object.Line)}
}

func position(m *machine) string {
	if m.object == nil {
		return fmt.Sprintf("Machine %s", m.Name)
	}
	return fmt.Sprintf("%s:%d", m.object.File, m.object.Line)
}
