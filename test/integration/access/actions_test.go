package access

import (
	"context"
	"errors"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

var machines = refitKind("machines")

func refitKind(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "refit.dev", Version: "v1alpha1", Resource: resource}
}

var resources = map[string]schema.GroupVersionResource{
	"machines": machines, "machinedeployments": refitKind("machinedeployments"), "ledgers": refitKind("ledgers"),
	"machinedisruptionbudgets": refitKind("machinedisruptionbudgets"),
	"roles":                    {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
	"rolebindings":             {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
	"serviceaccounts":          {Version: "v1", Resource: "serviceaccounts"},
	"secrets":                  {Version: "v1", Resource: "secrets"},
	"pods":                     {Version: "v1", Resource: "pods"},
	"leases":                   {Group: "coordination.k8s.io", Version: "v1", Resource: "leases"},
}

// request is what an action sends: as whom, on whose Machine, for real or as a dry run.
type request struct {
	ctx    context.Context
	client dynamic.Interface
	own    string
	dryRun []string
	unique string // stands for UNIQUE, so that each request changes something
}

func (r request) in(resource string) dynamic.ResourceInterface {
	return r.client.Resource(resources[resource]).Namespace(namespace)
}

// errIgnored says that the API server took the request and left out what it asked for.
var errIgnored = errors.New("ignored")

// action is one row of the matrix.
type action struct {
	name   string
	writes bool
	// once: a deed after which the next request would meet another world; allowed, it stays a dry run.
	once bool
	// own is legitimate for an agent; see section 7 of docs/architecture.md.
	own bool
	// alone: legitimate for the agent of a host with etcd alone, which no kubelet speaks for.
	alone bool
	do    func(r request) error
}

const (
	tokenOwn      = "{apiVersion: authentication.k8s.io/v1, kind: TokenRequest, metadata: {name: refit-machine-OWN}, spec: {audiences: []}}"
	tokenOwnBound = "{apiVersion: authentication.k8s.io/v1, kind: TokenRequest, metadata: {name: refit-machine-OWN}, spec: {audiences: [], boundObjectRef: {kind: Node, apiVersion: v1, name: OWN}}}"
	tokenOther    = "{apiVersion: authentication.k8s.io/v1, kind: TokenRequest, metadata: {name: refit-machine-OTHER}, spec: {audiences: []}}"
	tokenNoHost   = "{apiVersion: authentication.k8s.io/v1, kind: TokenRequest, metadata: {name: default}, spec: {audiences: []}}"
	podAsHost     = "{apiVersion: v1, kind: Pod, metadata: {generateName: p-}, spec: {serviceAccountName: refit-machine-w1, " + restricted + "}}"
	// restricted is what Pod Security lets into the namespace of the Machines.
	restricted = "securityContext: {runAsNonRoot: true, runAsUser: 1, seccompProfile: {type: RuntimeDefault}}, containers: [{name: c, image: i, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]"
	ownRules   = "rules: [{apiGroups: [refit.dev], resources: [machines], resourceNames: [OWN], verbs: [get]}]"
	ownedByOwn = "ownerReferences: [{apiVersion: refit.dev/v1alpha1, kind: Machine, name: OWN, uid: u}]"
)

// actions in the order of the table.
func actions() []action {
	const other = "OTHER"
	all := []action{
		{name: "machines: get own", own: true, do: get("machines", "OWN")},
		{name: "machines: get another", do: get("machines", other)},
		{name: "machines: list own by name", own: true, do: list("machines", "metadata.name=OWN")},
		{name: "machines: list another by name", do: list("machines", "metadata.name=OTHER")},
		{name: "machines: list all", do: list("machines", "")},
		{name: "machines: watch own by name", own: true, do: watching("machines", "metadata.name=OWN")},
		{name: "machines: watch all", do: watching("machines", "")},
		{name: "machines: create", writes: true, do: create("machines", "{apiVersion: refit.dev/v1alpha1, kind: Machine, metadata: {generateName: new-}, spec: {roles: [Worker]}}")},
		{name: "machines: delete own", writes: true, once: true, do: remove("machines", "OWN")},
		{name: "machines: delete collection", writes: true, once: true, do: removeAll("machines")},
		{name: "machines: update own spec", writes: true, do: update("machines", "OWN", `{"spec":{"paused":true}}`)},
		{name: "machines: apply own spec", writes: true, do: applying("machines", "OWN", "{spec: {paused: true}}")},
	}
	metadata := map[string]string{
		"labels": `{"metadata":{"labels":{"refit.dev/pool":"UNIQUE"}}}`, "annotations": `{"metadata":{"annotations":{"refit.dev/retry":"UNIQUE"}}}`,
		"finalizers":      `{"metadata":{"finalizers":["refit.dev/machine","a/UNIQUE"]}}`,
		"ownerReferences": `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"w1","uid":"UNIQUE"}]}}`,
	}
	fields := []string{"labels", "annotations", "finalizers", "ownerReferences"}
	all = append(all, action{name: "machines: patch own spec", writes: true, do: patch("machines", "OWN", `{"spec":{"paused":true}}`)})
	for _, field := range fields {
		all = append(all, action{name: "machines: patch own " + field, writes: true, do: patch("machines", "OWN", metadata[field])})
	}
	all = append(all,
		action{name: "machines/status: get own", do: get("machines", "OWN", "status")},
		action{name: "machines/status: patch own, an agent's field", writes: true, own: true, do: patch("machines", "OWN", `{"status":{"host":{"machineID":"UNIQUE"}}}`, "status")},
		action{name: "machines/status: apply own, an agent's field", writes: true, own: true, do: applying("machines", "OWN", "{status: {host: {machineID: UNIQUE}}}", "status")},
		action{name: "machines/status: update own, an agent's field", writes: true, do: update("machines", "OWN", `{"status":{"host":{"machineID":"UNIQUE"}}}`, "status")},
		action{name: "machines/status: patch own, the grant", writes: true, do: patch("machines", "OWN", `{"status":{"grant":{"id":"UNIQUE","assignmentID":"a","planHash":"h","epoch":1}}}`, "status")},
		action{name: "machines/status: apply own, the grant", writes: true, do: applying("machines", "OWN", "{status: {grant: {id: UNIQUE, assignmentID: a, planHash: h, epoch: 1}}}", "status")},
		action{name: "machines/status: update own, the grant", writes: true, do: update("machines", "OWN", `{"status":{"grant":{"id":"UNIQUE","assignmentID":"a","planHash":"h","epoch":2}}}`, "status")},
		action{name: "machines/status: patch own, condition Ready", writes: true, do: patch("machines", "OWN", `{"status":{"conditions":[{"type":"Ready","status":"True","reason":"UNIQUE","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, "status")},
		action{name: "machines/status: patch another", writes: true, do: patch("machines", other, `{"status":{"host":{"machineID":"UNIQUE"}}}`, "status")},
		action{name: "machines/status: apply another", writes: true, do: applying("machines", other, "{status: {host: {machineID: UNIQUE}}}", "status")},
		action{name: "machines/status: patch own spec through it", writes: true, do: patch("machines", "OWN", `{"spec":{"packageSources":[{"name":"UNIQUE","uri":"https://evil.example/","suites":["/"],"signedBy":"k"}]}}`, "status")},
	)
	for _, field := range fields {
		all = append(all, action{name: "machines/status: patch own " + field + " through it", writes: true, do: patch("machines", "OWN", metadata[field], "status")})
	}
	return append(all, besides()...)
}

// besides are the objects that are no Machines.
func besides() []action {
	return []action{
		{name: "machinedeployments: get", do: get("machinedeployments", "pool")},
		{name: "machinedeployments: patch spec", writes: true, do: patch("machinedeployments", "pool", `{"spec":{"paused":true}}`)},
		{name: "machinedeployments/scale: patch", writes: true, do: patch("machinedeployments", "pool", `{"spec":{"replicas":1}}`, "scale")},
		{name: "machinedeployments/status: patch", writes: true, do: patch("machinedeployments", "pool", `{"status":{"observedGeneration":1}}`, "status")},
		{name: "machinedisruptionbudgets: patch spec", writes: true, do: patch("machinedisruptionbudgets", "budget", `{"spec":{"maxUnavailable":2}}`)},
		{name: "machinedisruptionbudgets/status: patch", writes: true, do: patch("machinedisruptionbudgets", "budget", `{"status":{"machines":1,"unavailable":0,"disruptionsAllowed":1}}`, "status")},
		{name: "ledgers: list", do: list("ledgers", "")},
		{name: "ledgers: create", writes: true, do: create("ledgers", "{apiVersion: refit.dev/v1alpha1, kind: Ledger, metadata: {name: refit}, spec: {epoch: 9}}")},
		{name: "secrets: get", do: get("secrets", "secret")},
		{name: "serviceaccounts/token: own", writes: true, own: true, do: create("serviceaccounts", tokenOwn, "token")},
		{name: "serviceaccounts/token: own, bound to its Node", writes: true, own: true, do: create("serviceaccounts", tokenOwnBound, "token")},
		{name: "serviceaccounts/token: of another host", writes: true, do: create("serviceaccounts", tokenOther, "token")},
		{name: "serviceaccounts/token: of no host", writes: true, do: create("serviceaccounts", tokenNoHost, "token")},
		{name: "serviceaccounts: create, a host's", writes: true, do: create("serviceaccounts", "{apiVersion: v1, kind: ServiceAccount, metadata: {name: refit-machine-OWN, "+ownedByOwn+"}}")},
		{name: "serviceaccounts: create, any other", writes: true, do: create("serviceaccounts", "{apiVersion: v1, kind: ServiceAccount, metadata: {generateName: s-}}")},
		{name: "roles: create, a host's", writes: true, do: create("roles", "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: refit-machine-OWN, "+ownedByOwn+"}, "+ownRules+"}")},
		{name: "roles: create, any other", writes: true, do: create("roles", "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {generateName: r-}}")},
		{name: "roles: update, a host's to every Machine", writes: true, once: true, do: update("roles", "refit-machine-OWN", `{"rules":[{"apiGroups":["refit.dev"],"resources":["machines"],"verbs":["get","list","watch"]}]}`)},
		{name: "rolebindings: update, a host's to somebody else", writes: true, once: true, do: update("rolebindings", "refit-machine-OWN", `{"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"eve"}]}`)},
		{name: "leases: get own", do: get("leases", "refit-machine-OWN")},
		{name: "leases: list", do: list("leases", "")},
		{name: "leases: create", writes: true, do: create("leases", "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {generateName: refit-machine-}}")},
		{name: "leases: patch own", writes: true, alone: true, do: patch("leases", "refit-machine-OWN", `{"spec":{"holderIdentity":"UNIQUE"}}`)},
		{name: "leases: patch another", writes: true, do: patch("leases", "refit-machine-OTHER", `{"spec":{"holderIdentity":"UNIQUE"}}`)},
		{name: "leases: delete own", writes: true, once: true, do: remove("leases", "refit-machine-OWN")},
		{name: "pods: create, as a host", writes: true, do: create("pods", podAsHost)},
		{name: "pods: list", do: list("pods", "")},
	}
}

func named(text, own, other, unique string) string {
	return strings.NewReplacer("OWN", own, "OTHER", other, "UNIQUE", unique).Replace(text)
}

// another is a Machine that is not the identity's own.
func (r request) another() string {
	if r.own == "w2" {
		return "w1"
	}
	return "w2"
}

func (r request) named(text string) string { return named(text, r.own, r.another(), r.unique) }

// parse reads an object that the test wrote itself.
func parse(text string) *unstructured.Unstructured {
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		panic(err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(raw, &out); err != nil {
		panic(err)
	}
	return &unstructured.Unstructured{Object: out}
}

func get(resource, name string, subresources ...string) func(request) error {
	return func(r request) error {
		_, err := r.in(resource).Get(r.ctx, r.named(name), metav1.GetOptions{}, subresources...)
		return err
	}
}

func list(resource, fields string) func(request) error {
	return func(r request) error {
		_, err := r.in(resource).List(r.ctx, metav1.ListOptions{FieldSelector: r.named(fields)})
		return err
	}
}

func watching(resource, fields string) func(request) error {
	return func(r request) error {
		w, err := r.in(resource).Watch(r.ctx, metav1.ListOptions{FieldSelector: r.named(fields)})
		if err == nil {
			w.Stop()
		}
		return err
	}
}

func create(resource, object string, subresources ...string) func(request) error {
	return func(r request) error {
		_, err := r.in(resource).Create(r.ctx, parse(r.named(object)), metav1.CreateOptions{DryRun: r.dryRun}, subresources...)
		if apierrors.IsAlreadyExists(err) {
			return nil // roles and policies had nothing against it
		}
		return err
	}
}

func remove(resource, name string) func(request) error {
	return func(r request) error {
		return r.in(resource).Delete(r.ctx, r.named(name), metav1.DeleteOptions{DryRun: r.dryRun})
	}
}

func removeAll(resource string) func(request) error {
	return func(r request) error {
		return r.in(resource).DeleteCollection(r.ctx, metav1.DeleteOptions{DryRun: r.dryRun}, metav1.ListOptions{})
	}
}

func patch(resource, name, change string, subresources ...string) func(request) error {
	return func(r request) error {
		change := r.named(change)
		got, err := r.in(resource).Patch(r.ctx, r.named(name), types.MergePatchType, []byte(change), metav1.PatchOptions{DryRun: r.dryRun}, subresources...)
		return effect(got, change, err)
	}
}

// update reads as administrator, changes, and writes as the identity.
func update(resource, name, change string, subresources ...string) func(request) error {
	return func(r request) error {
		admin, err := dynamic.NewForConfig(server.Admin())
		if err != nil {
			return err
		}
		now, err := admin.Resource(resources[resource]).Namespace(namespace).Get(r.ctx, r.named(name), metav1.GetOptions{})
		if err != nil {
			return err
		}
		merge(now.Object, parse(r.named(change)).Object)
		got, err := r.in(resource).Update(r.ctx, now, metav1.UpdateOptions{DryRun: r.dryRun}, subresources...)
		return effect(got, r.named(change), err)
	}
}

func applying(resource, name, content string, subresources ...string) func(request) error {
	return func(r request) error {
		o := parse(r.named(content))
		o.SetGroupVersionKind(schema.GroupVersionKind{Group: "refit.dev", Version: "v1alpha1", Kind: "Machine"})
		o.SetName(r.named(name))
		_, err := r.in(resource).Apply(r.ctx, r.named(name), o, metav1.ApplyOptions{FieldManager: "matrix-" + r.unique + strconv.Itoa(len(content)), Force: true, DryRun: r.dryRun}, subresources...)
		return err
	}
}

func merge(into, change map[string]any) {
	for k, v := range change {
		below, isMap := v.(map[string]any)
		there, wasMap := into[k].(map[string]any)
		if isMap && wasMap {
			merge(there, below)
			continue
		}
		into[k] = v
	}
}

// effect tells whether what was asked for is in the answer.
func effect(got *unstructured.Unstructured, change string, err error) error {
	if err != nil {
		return err
	}
	asked, there := parse(change).Object, got.DeepCopy().Object
	before, _ := json.Marshal(there)
	merge(there, asked)
	after, _ := json.Marshal(there)
	if string(before) != string(after) {
		return errIgnored
	}
	return nil
}
