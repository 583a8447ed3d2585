// Package testfleet brings fleets up and down, and hands their hosts to tests: what the fleet program does, as a library.
//
//	f, err := testfleet.Up(ctx, testfleet.Options{Name: "demo", ControlPlanes: 1, Workers: 2, Kubernetes: "v1.36.3", Containerd: "v1.7.27"})
//	out, err := f.Host("worker-1").Exec(ctx, nil, "kubelet", "--version")
//	err = f.Down(ctx)
//
// It needs root, systemd-nspawn and the programs that package artefacts asks for.
package testfleet
