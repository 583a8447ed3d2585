package simulation

import (
	"fmt"
	"slices"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/preview"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// fill puts the objects of a scenario into the world, as they are before anybody looks.
func (e *Engine) fill(s Scenario) error {
	for i := range s.Nodes {
		n := s.Nodes[i].DeepCopy()
		if len(n.Status.Conditions) == 0 {
			nodeReady(n, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status", e.now)
		}
		e.world.putNode(n)
	}
	for i := range s.Deployments {
		d := s.Deployments[i].DeepCopy()
		d.Generation = max(d.Generation, 1)
		e.world.putDeployment(d)
	}
	for i := range s.Budgets {
		e.world.putBudget(s.Budgets[i].DeepCopy())
	}
	machines := slices.Clone(s.Machines)
	for i := range s.Spec.Machines {
		made, err := e.generate(i, &s.Spec.Machines[i])
		if err != nil {
			return err
		}
		machines = append(machines, made...)
	}
	if len(machines) == 0 {
		return &InputError{Field: "spec.machines", Message: "there is no machine: give Machines, or have some made up with spec.machines"}
	}
	if len(machines) > mostMachines {
		return &InputError{Field: "spec.machines", Message: fmt.Sprintf("there are %d machines, and at most %d are simulated", len(machines), mostMachines)}
	}
	for i := range machines {
		if err := e.addMachine(machines[i].DeepCopy()); err != nil {
			return err
		}
	}
	if err := e.addPods(s); err != nil {
		return err
	}
	if err := e.checkAnswers(); err != nil {
		return err
	}
	return e.addEvents(s.Spec.Events)
}

const mostMachines = 100000

// generate makes up machines, and Nodes where they are given labels.
func (e *Engine) generate(at int, g *Generator) ([]v1alpha1.Machine, error) {
	field := func(name string) string { return fmt.Sprintf("spec.machines[%d].%s", at, name) }
	switch {
	case g.Count < 1 || g.Count > mostMachines:
		return nil, &InputError{Field: field("count"), Message: fmt.Sprintf("has to be from 1 to %d", mostMachines)}
	case g.Name == "":
		return nil, &InputError{Field: field("name"), Message: "give what the names begin with, such as worker-"}
	case g.Versions.Kubelet == "" && !slices.Equal(g.Roles, []v1alpha1.Role{v1alpha1.RoleEtcd}):
		return nil, &InputError{Field: field("versions.kubelet"), Message: "give the version that runs, such as v1.36.3"}
	case (g.TopologyKey == "") != (len(g.Domains) == 0):
		return nil, &InputError{Field: field("topologyKey"), Message: "give both topologyKey and domains, or neither"}
	}
	roles := g.Roles
	if len(roles) == 0 {
		roles = []v1alpha1.Role{v1alpha1.RoleWorker}
	}
	width := len(fmt.Sprint(g.Count))
	out := make([]v1alpha1.Machine, 0, g.Count)
	for i := range g.Count {
		m := v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: e.world.namespace, Name: fmt.Sprintf("%s%0*d", g.Name, width, i+1), Labels: g.Labels}}
		m.Spec.Roles, m.Spec.Versions = roles, g.Wish
		m.Status.Versions = observedOf(&g.Versions)
		if len(g.Domains) > 0 && e.world.nodes[m.Name] == nil {
			n := newNode(&m, map[string]string{g.TopologyKey: g.Domains[i%len(g.Domains)]})
			nodeReady(n, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status", e.now)
			e.world.putNode(n)
		}
		out = append(out, m)
	}
	return out, nil
}

// observedOf is a set of versions as a host reports it.
func observedOf(v *v1alpha1.Versions) *v1alpha1.ObservedVersions {
	out := &v1alpha1.ObservedVersions{Kubelet: string(v.Kubelet), Kubeadm: string(v.Kubelet), Etcd: string(v.Etcd)}
	if v.ControlPlane != "" {
		api := string(v.ControlPlane)
		out.ControlPlane = &v1alpha1.ObservedControlPlane{APIServer: api, ControllerManager: api, Scheduler: api}
	}
	if r := v.ContainerRuntime; r != nil {
		out.ContainerRuntime = &v1alpha1.ObservedRuntime{Name: string(r.Name), Version: string(r.Version), Text: string(r.Name) + "://" + string(r.Version)}
	}
	return out
}

// wellEtcd is what a simulated host with a member says of etcd: all that is simulated of it is that it is well.
func wellEtcd(m *v1alpha1.Machine) *v1alpha1.ObservedEtcd {
	if m.Status.Versions == nil || m.Status.Versions.Etcd == "" {
		return nil
	}
	return &v1alpha1.ObservedEtcd{Member: m.Name, Members: 1, Healthy: 1, Quorum: true}
}

// addMachine takes over what a Machine reports, and starts the handshake anew: what was in
// flight in the cluster that the file comes from is not.
func (e *Engine) addMachine(m *v1alpha1.Machine) error {
	if e.world.machines[m.Name] != nil {
		return &InputError{Object: "Machine/" + m.Name, Field: "metadata.name", Message: "it is there twice, once made up by spec.machines: give another name"}
	}
	if err := e.versionsOfNode(m); err != nil {
		return err
	}
	m.Generation = max(m.Generation, 1)
	m.DeletionTimestamp, m.Finalizers, m.ResourceVersion = nil, []string{v1alpha1.FinalizerMachine}, ""
	s := &m.Status
	h := &host{e: e, name: m.Name, facts: preview.ReportedFacts(m), runs: map[string]bool{}}
	m.Status = v1alpha1.MachineStatus{
		Host: s.Host, Versions: s.Versions, OS: s.OS, Kubelet: s.Kubelet, RequestedAPIs: s.RequestedAPIs, PassedMinors: s.PassedMinors, History: s.History,
		Etcd: wellEtcd(m),
	}
	if m.Status.Kubelet == nil {
		m.Status.Kubelet = &v1alpha1.ObservedKubelet{}
	}
	for _, c := range s.Conditions {
		if slices.Contains(v1alpha1.AgentConditions, c.Type) && c.Type != v1alpha1.ConditionStaged {
			m.Status.Conditions = append(m.Status.Conditions, c)
		}
	}
	if err := e.keepBase(m); err != nil {
		return err
	}
	e.hosts[m.Name] = h
	if e.world.nodes[m.Name] == nil && !slices.Equal(m.Spec.Roles, []v1alpha1.Role{v1alpha1.RoleEtcd}) {
		n := newNode(m, nil)
		nodeReady(n, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status", e.now)
		e.world.putNode(n)
	}
	e.world.updateNode(m.Name, func(n *corev1.Node) {
		n.Status.NodeInfo.KubeletVersion = m.Status.Versions.Kubelet
		if r := m.Status.Versions.ContainerRuntime; r != nil && r.Version != "" {
			n.Status.NodeInfo.ContainerRuntimeVersion = r.Name + "://" + r.Version
		}
	})
	e.world.putMachine(m)
	return nil
}

// versionsOfNode takes what a Machine does not report from its Node.
func (e *Engine) versionsOfNode(m *v1alpha1.Machine) error {
	if m.Status.Versions != nil {
		return nil
	}
	n := e.world.nodes[m.Name]
	if n == nil || n.Status.NodeInfo.KubeletVersion == "" {
		return &InputError{Object: "Machine/" + m.Name, Field: "status.versions", Message: "what runs on it is not known: give status.versions, such as {kubelet: v1.36.3}, or a Node of that name with status.nodeInfo.kubeletVersion"}
	}
	if slices.Contains(m.Spec.Roles, v1alpha1.RoleControlPlane) {
		return &InputError{Object: "Machine/" + m.Name, Field: "status.versions.controlPlane", Message: "which API server runs on it is not known: give status.versions with controlPlane.apiServer"}
	}
	m.Status.Versions = &v1alpha1.ObservedVersions{Kubelet: n.Status.NodeInfo.KubeletVersion}
	return nil
}

// keepBase keeps what people have written into the spec: what is not as a template has it.
func (e *Engine) keepBase(m *v1alpha1.Machine) error {
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&m.Spec)
	if err != nil {
		return fmt.Errorf("encoding the spec of Machine %s: %w", m.Name, err)
	}
	for _, d := range e.world.deployments {
		selector, err := metav1.LabelSelectorAsSelector(&d.Spec.Selector)
		if err != nil || !selector.Matches(labelsOf(m)) {
			continue
		}
		template, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&d.Spec.Template.Spec)
		if err != nil {
			return fmt.Errorf("encoding the template of MachineDeployment %s: %w", d.Name, err)
		}
		spec = without(spec, template)
	}
	e.world.base[m.Name] = spec
	return nil
}

func (e *Engine) addPods(s Scenario) error {
	for i := range s.PodBudgets {
		b := s.PodBudgets[i].DeepCopy()
		b.Generation = max(b.Generation, 1)
		if err := e.world.putPodBudget(b); err != nil {
			return err
		}
	}
	for i := range s.Pods {
		p := s.Pods[i].DeepCopy()
		if p.Spec.NodeName == "" {
			e.world.putPod(p)
			key := keyOfPod(p)
			e.pending[key] = func() { e.schedule(key, nil, "") }
			continue
		}
		if e.world.nodes[p.Spec.NodeName] == nil {
			return &InputError{Object: "Pod/" + p.Namespace + "/" + p.Name, Field: "spec.nodeName", Message: fmt.Sprintf("%q is no Node of the scenario: name one", p.Spec.NodeName)}
		}
		if p.Status.Phase == "" {
			e.world.setPodReady(p, isReady(e.world.nodes[p.Spec.NodeName]))
			p.Status.Phase = corev1.PodRunning
		}
		e.world.putPod(p)
	}
	e.world.settleBudgets()
	return nil
}
