package watch

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/status"
)

// FieldManager is the agent's name in the managed fields of a Machine.
const FieldManager = "refit-agent"

// requestTimeout bounds a read or a write; a watch has its own.
const requestTimeout = 30 * time.Second

// Client reads and writes the one Machine of this host.
type Client struct {
	rest      rest.Interface
	rotation  *rotation
	namespace string
	name      string
	params    runtime.ParameterCodec
}

// NewClient makes a client for one Machine. A client certificate that the configuration
// names by file is read again when it has changed.
func NewClient(config *rest.Config, namespace, name string) (*Client, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering the Refit API: %w", err)
	}
	config = rest.CopyConfig(config)
	config.GroupVersion = &v1alpha1.GroupVersion
	config.APIPath = "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.UserAgent = FieldManager
	connections, rotation, err := httpClient(config)
	if err != nil {
		return nil, err
	}
	client, err := rest.RESTClientForConfigAndClient(config, connections)
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	return &Client{rest: client, rotation: rotation, namespace: namespace, name: name, params: runtime.NewParameterCodec(scheme)}, nil
}

// Get reads the Machine from the API server's store, never from its cache.
func (c *Client) Get(ctx context.Context) (*v1alpha1.Machine, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	machine := &v1alpha1.Machine{}
	err := c.rest.Get().Namespace(c.namespace).Resource("machines").Name(c.name).MaxRetries(0).Do(ctx).Into(machine)
	c.rotation.judge(err)
	if err != nil {
		return nil, fmt.Errorf("reading Machine %s/%s: %w", c.namespace, c.name, err)
	}
	return machine, nil
}

// ApplyStatus makes machineStatus everything that the agent says of its Machine: a field of
// an earlier apply that is missing here is removed. With a resourceVersion the write
// happens only if the Machine is still at that version; else it is a conflict. What the
// CRD of an earlier version does not have is left out: it takes no apply with such a field.
func (c *Client) ApplyStatus(ctx context.Context, machineStatus v1alpha1.MachineStatus, resourceVersion string) (*v1alpha1.Machine, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	fields, err := status.Fields(machineStatus)
	if err != nil {
		return nil, fmt.Errorf("encoding the status of Machine %s/%s: %w", c.namespace, c.name, err)
	}
	for {
		machine, err := c.apply(ctx, fields, resourceVersion)
		left := false
		for _, path := range undeclaredFields(err) { // the API server names one at a time
			left = leaveOut(fields, path) || left
		}
		if !left {
			return machine, err
		}
	}
}

func (c *Client) apply(ctx context.Context, fields map[string]any, resourceVersion string) (*v1alpha1.Machine, error) {
	body, err := applyBody(c.namespace, c.name, resourceVersion, fields)
	if err != nil {
		return nil, fmt.Errorf("encoding the status of Machine %s/%s: %w", c.namespace, c.name, err)
	}
	force := true
	machine := &v1alpha1.Machine{}
	err = c.rest.Patch(types.ApplyYAMLPatchType).
		Namespace(c.namespace).Resource("machines").Name(c.name).SubResource("status").
		VersionedParams(&metav1.PatchOptions{FieldManager: FieldManager, Force: &force}, c.params).
		MaxRetries(0).Body(body).Do(ctx).Into(machine)
	c.rotation.judge(err)
	if err != nil {
		return nil, fmt.Errorf("writing the status of Machine %s/%s: %w", c.namespace, c.name, err)
	}
	return machine, nil
}

// applyBody has no spec: a Machine's own JSON form would claim an empty one.
func applyBody(namespace, name, resourceVersion string, fields map[string]any) ([]byte, error) {
	metadata := map[string]string{"name": name, "namespace": namespace}
	if resourceVersion != "" {
		metadata["resourceVersion"] = resourceVersion
	}
	return json.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Machine",
		"metadata": metadata, "status": fields,
	})
}

func (c *Client) list(ctx context.Context) (*v1alpha1.MachineList, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list := &v1alpha1.MachineList{}
	c.rotation.refresh()
	err := c.rest.Get().Namespace(c.namespace).Resource("machines").
		VersionedParams(&metav1.ListOptions{FieldSelector: c.selector(), ResourceVersion: "0"}, c.params).
		MaxRetries(0).Do(ctx).Into(list)
	c.rotation.judge(err)
	if err != nil {
		return nil, fmt.Errorf("listing Machine %s/%s: %w", c.namespace, c.name, err)
	}
	return list, nil
}

func (c *Client) watch(ctx context.Context, resourceVersion string, timeout time.Duration) (apiwatch.Interface, error) {
	seconds := int64(timeout.Seconds())
	c.rotation.refresh()
	stream, err := c.rest.Get().Namespace(c.namespace).Resource("machines").
		VersionedParams(&metav1.ListOptions{
			Watch: true, FieldSelector: c.selector(), ResourceVersion: resourceVersion,
			TimeoutSeconds: &seconds, AllowWatchBookmarks: true,
		}, c.params).
		// The server ends the stream at its timeout; a server that is gone without a word must not hold us for ever.
		Timeout(timeout + time.Minute).MaxRetries(0).Watch(ctx)
	c.rotation.judge(err)
	if err != nil {
		return nil, fmt.Errorf("watching Machine %s/%s: %w", c.namespace, c.name, err)
	}
	return stream, nil
}

// selector names the one Machine: the Role of this host allows a list for that name alone.
func (c *Client) selector() string {
	return fields.OneTermEqualSelector(metav1.ObjectNameField, c.name).String()
}
