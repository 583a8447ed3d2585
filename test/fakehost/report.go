package fakehost

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/api/v1alpha1"
)

func (h *Host) condition(kind string, is bool, reason, message string) {
	conditions, _ := h.status["conditions"].(map[string]any)
	if conditions == nil {
		conditions = map[string]any{}
		h.status["conditions"] = conditions
	}
	state := "False"
	if is {
		state = "True"
	}
	if old, ok := conditions[kind].(map[string]any); ok && old["status"] == state && old["reason"] == reason && old["message"] == message {
		return
	}
	conditions[kind] = map[string]any{"type": kind, "status": state, "reason": reason, "message": message, "lastTransitionTime": time.Now().UTC().Format(time.RFC3339)}
}

// report applies the agent's whole part of status, as the agent does. One that is conditional
// is always sent, any other only when it says something new.
func (h *Host) report(ctx context.Context, m *v1alpha1.Machine, resourceVersion string) error {
	text, err := json.Marshal(h.fields())
	if err != nil {
		return fmt.Errorf("encoding the status of host %s: %w", h.Name, err)
	}
	if resourceVersion == "" && h.reported == string(text) {
		return nil
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(fmt.Sprintf(`{"apiVersion":"refit.dev/v1alpha1","kind":"Machine","status":%s}`, text)), &u.Object); err != nil {
		return fmt.Errorf("encoding the status of host %s: %w", h.Name, err)
	}
	u.SetNamespace(h.Namespace)
	u.SetName(h.Name)
	u.SetUID(m.UID)
	u.SetResourceVersion(resourceVersion)
	h.reported = ""
	err = h.Client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("refit-agent"), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("reporting for host %s: %w", h.Name, err)
	}
	h.reported = string(text)
	return nil
}

func (h *Host) fields() map[string]any {
	fields := map[string]any{}
	for k, v := range h.status {
		if k != "conditions" {
			fields[k] = v
		}
	}
	var conditions []any
	if byType, ok := h.status["conditions"].(map[string]any); ok {
		for _, kind := range v1alpha1.AgentConditions {
			if c, there := byType[kind]; there {
				conditions = append(conditions, c)
			}
		}
	}
	fields["conditions"] = conditions
	return fields
}
