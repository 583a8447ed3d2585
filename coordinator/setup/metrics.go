package setup

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	refitmetrics "github.com/refit-dev/refit/coordinator/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// addMetrics puts the fleet's numbers beside those of the controllers. A coordinator that ran
// in this process before, as in tests, gives way to this one.
func (p *parts) addMetrics() error {
	c := refitmetrics.New(refitmetrics.Config{
		Machines: p.mgr.GetClient(), Nodes: p.nodes.GetClient(), Leads: p.mgr.Elected(), Now: time.Now,
		Log: p.mgr.GetLogger().WithName("metrics"),
	})
	err := metrics.Registry.Register(c)
	var before prometheus.AlreadyRegisteredError
	if errors.As(err, &before) {
		metrics.Registry.Unregister(before.ExistingCollector)
		err = metrics.Registry.Register(c)
	}
	if err != nil {
		return fmt.Errorf("registering the metrics: %w", err)
	}
	return nil
}
