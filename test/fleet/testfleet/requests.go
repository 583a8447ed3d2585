package testfleet

import (
	"time"

	"github.com/refit-dev/refit/test/fleet/daemon"
)

// Download is one request of a host to the fleet's mirror or registry.
type Download struct {
	Time time.Time
	Host string // the host's name
	// Service is apt or registry.
	Service string
	Path    string
}

// Downloads are the requests of the hosts to mirror and registry so far, in order.
func (f *Fleet) Downloads() ([]Download, error) {
	requests, err := daemon.Requests(f.Name())
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	for _, h := range f.Hosts() {
		names[h.Address()] = h.Name()
	}
	var all []Download
	for _, r := range requests {
		if name, ok := names[r.Address]; ok {
			all = append(all, Download{Time: r.Time, Host: name, Service: r.Service, Path: r.Path})
		}
	}
	return all, nil
}

// Kubectl is the path of a kubectl for this fleet.
func (f *Fleet) Kubectl() string { return f.record.Kubectl }
