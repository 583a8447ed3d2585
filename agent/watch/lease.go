package watch

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// leasePrefix is what the name of a host's Lease has before that of its Machine.
const leasePrefix = "refit-machine-"

// Renew says in the Lease of the host, which the coordinator has made, that the host is there.
func (c *Client) Renew(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	name := leasePrefix + c.name
	body, err := json.Marshal(map[string]any{"spec": map[string]any{"holderIdentity": c.name, "renewTime": metav1.NewMicroTime(now)}})
	if err != nil {
		return fmt.Errorf("encoding Lease %s/%s: %w", c.namespace, name, err)
	}
	err = c.rest.Patch(types.MergePatchType).AbsPath("/apis/coordination.k8s.io/v1", "namespaces", c.namespace, "leases", name).
		MaxRetries(0).Body(body).Do(ctx).Error()
	c.rotation.judge(err)
	if err != nil {
		return fmt.Errorf("renewing Lease %s/%s: %w", c.namespace, name, err)
	}
	return nil
}
