package runtime

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	versionv1 "github.com/containerd/containerd/api/services/version/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// daemon is a runtime behind a real socket that speaks the real protocol.
type daemon struct {
	runtimev1.UnimplementedRuntimeServiceServer
	runtimev1.UnimplementedImageServiceServer
	versionv1.UnimplementedVersionServer

	mu         sync.Mutex
	cri, own   string
	ready      bool
	info       map[string]string
	sandboxes  map[string]*runtimev1.PodSandboxConfig
	containers map[string]*runtimev1.Container
	comesBack  int // sandboxes that appear again after a stop
	images     map[string]*runtimev1.Image
	pulled     []string
	runErr     error
	stopped    []string
}

func (d *daemon) Version(context.Context, *runtimev1.VersionRequest) (*runtimev1.VersionResponse, error) {
	return &runtimev1.VersionResponse{RuntimeName: "containerd", RuntimeVersion: d.cri}, nil
}

// versions is containerd's own service; its method has the same name as the CRI's.
type versions struct {
	versionv1.UnimplementedVersionServer
	d *daemon
}

func (v versions) Version(context.Context, *emptypb.Empty) (*versionv1.VersionResponse, error) {
	return &versionv1.VersionResponse{Version: v.d.own}, nil
}

func (d *daemon) Status(context.Context, *runtimev1.StatusRequest) (*runtimev1.StatusResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &runtimev1.StatusResponse{
		Status: &runtimev1.RuntimeStatus{Conditions: []*runtimev1.RuntimeCondition{{Type: runtimev1.RuntimeReady, Status: d.ready, Reason: "Starting"}}},
		Info:   d.info,
	}, nil
}

func (d *daemon) ListPodSandbox(_ context.Context, q *runtimev1.ListPodSandboxRequest) (*runtimev1.ListPodSandboxResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	answer := &runtimev1.ListPodSandboxResponse{}
	for id, config := range d.sandboxes {
		if q.Filter.GetLabelSelector()[probeLabel] != "" && config.GetLabels()[probeLabel] == "" {
			continue
		}
		answer.Items = append(answer.Items, &runtimev1.PodSandbox{Id: id})
	}
	return answer, nil
}

func (d *daemon) RunPodSandbox(_ context.Context, q *runtimev1.RunPodSandboxRequest) (*runtimev1.RunPodSandboxResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.runErr != nil {
		return nil, d.runErr
	}
	d.sandboxes["probe"] = q.Config
	return &runtimev1.RunPodSandboxResponse{PodSandboxId: "probe"}, nil
}

func (d *daemon) PodSandboxStatus(context.Context, *runtimev1.PodSandboxStatusRequest) (*runtimev1.PodSandboxStatusResponse, error) {
	return &runtimev1.PodSandboxStatusResponse{Status: &runtimev1.PodSandboxStatus{State: runtimev1.PodSandboxState_SANDBOX_READY}}, nil
}

func (d *daemon) StopPodSandbox(_ context.Context, q *runtimev1.StopPodSandboxRequest) (*runtimev1.StopPodSandboxResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped = append(d.stopped, "sandbox "+q.PodSandboxId)
	delete(d.sandboxes, q.PodSandboxId)
	if d.comesBack > 0 {
		d.comesBack--
		d.sandboxes[q.PodSandboxId] = nil
	}
	return &runtimev1.StopPodSandboxResponse{}, nil
}

func (d *daemon) RemovePodSandbox(context.Context, *runtimev1.RemovePodSandboxRequest) (*runtimev1.RemovePodSandboxResponse, error) {
	return &runtimev1.RemovePodSandboxResponse{}, nil
}

func (d *daemon) ListContainers(context.Context, *runtimev1.ListContainersRequest) (*runtimev1.ListContainersResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	answer := &runtimev1.ListContainersResponse{}
	for _, c := range d.containers {
		answer.Containers = append(answer.Containers, c)
	}
	return answer, nil
}

func (d *daemon) StopContainer(_ context.Context, q *runtimev1.StopContainerRequest) (*runtimev1.StopContainerResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped = append(d.stopped, "container "+q.ContainerId)
	delete(d.containers, q.ContainerId)
	return &runtimev1.StopContainerResponse{}, nil
}

func (d *daemon) ImageStatus(_ context.Context, q *runtimev1.ImageStatusRequest) (*runtimev1.ImageStatusResponse, error) {
	return &runtimev1.ImageStatusResponse{Image: d.images[q.Image.Image]}, nil
}

func (d *daemon) PullImage(_ context.Context, q *runtimev1.PullImageRequest) (*runtimev1.PullImageResponse, error) {
	if q.Image.Image == "absent:v1" {
		return nil, status.Error(codes.NotFound, "no such image")
	}
	if q.Image.Image == "away:v1" {
		return nil, status.Error(codes.Unknown, "failed to do request: dial tcp 192.0.2.1:443: connection refused")
	}
	d.pulled = append(d.pulled, q.Image.Image)
	return &runtimev1.PullImageResponse{}, nil
}

func newDaemon() *daemon {
	return &daemon{
		cri: "v1.7.35", own: "v1.7.35", ready: true,
		sandboxes: map[string]*runtimev1.PodSandboxConfig{}, containers: map[string]*runtimev1.Container{}, images: map[string]*runtimev1.Image{},
	}
}

func (d *daemon) serve(t *testing.T, socket string) {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	require.NoError(t, err)
	server := grpc.NewServer()
	runtimev1.RegisterRuntimeServiceServer(server, d)
	runtimev1.RegisterImageServiceServer(server, d)
	versionv1.RegisterVersionServer(server, versions{d: d})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
}

func start(t *testing.T, d *daemon) *Runtime {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	d.serve(t, socket)
	r := New("unix://" + socket)
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func TestTwoAnswersThatDifferAreAnError(t *testing.T) {
	d := newDaemon()
	r := start(t, d)
	name, version, err := r.Version(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "containerd v1.7.35", name+" "+version)
	d.own = "v2.4.2"
	_, _, err = r.Version(t.Context())
	require.ErrorContains(t, err, "v2.4.2")
}

func TestWaitingLastsUntilTheDaemonIsBackAndReady(t *testing.T) {
	d := newDaemon()
	d.ready = false
	socket := filepath.Join(t.TempDir(), "s")
	r := New("unix://" + socket)
	t.Cleanup(func() { _ = r.Close() })
	time.AfterFunc(700*time.Millisecond, func() { d.serve(t, socket) }) // refused until here
	time.AfterFunc(1500*time.Millisecond, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.ready = true
	})
	started := time.Now()
	require.NoError(t, r.WaitReady(t.Context(), 20*time.Second))
	assert.Greater(t, time.Since(started), 1400*time.Millisecond)
}

func TestADaemonThatDoesNotGetReadySaysWhy(t *testing.T) {
	d := newDaemon()
	d.ready = false
	err := start(t, d).WaitReady(t.Context(), 700*time.Millisecond)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "Starting")
	err = New("unix://"+filepath.Join(t.TempDir(), "s")).WaitReady(t.Context(), 700*time.Millisecond)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestStoppingLeavesNoSandboxAndIsGentleWithContainers(t *testing.T) {
	d := newDaemon()
	d.sandboxes["a"], d.containers["c"] = nil, &runtimev1.Container{Id: "c"}
	d.comesBack = 1
	n, err := start(t, d).StopSandboxes(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 2, n, "the one that came back counts again")
	assert.Equal(t, []string{"container c", "sandbox a", "sandbox a"}, d.stopped)
}

func TestSandboxesThatComeBackForeverPointToTheKubelet(t *testing.T) {
	d := newDaemon()
	d.sandboxes["a"], d.comesBack = nil, 99
	_, err := start(t, d).StopSandboxes(t.Context())
	require.ErrorContains(t, err, "kubelet")
}

func TestAProbeStartsASandboxAndLeavesNone(t *testing.T) {
	for name, tc := range map[string]struct{ kubelet, want string }{
		"the kubelet's driver is systemd": {"systemd", "system.slice"},
		"the runtime's own driver":        {"", "/refit-probe"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDaemon()
			d.sandboxes["left"] = &runtimev1.PodSandboxConfig{Labels: map[string]string{probeLabel: "true"}}
			d.sandboxes["pod"] = &runtimev1.PodSandboxConfig{}
			r := start(t, d)
			r.CgroupDriver = tc.kubelet
			config, err := r.probeConfig(t.Context())
			require.NoError(t, err)
			assert.Equal(t, tc.want, config.Linux.CgroupParent)
			require.NoError(t, r.ProbeSandbox(t.Context()))
			assert.Len(t, d.sandboxes, 1, "the pod of somebody else stays")
			d.runErr = status.Error(codes.Unknown, "unsupported shim version (3)")
			require.ErrorContains(t, r.ProbeSandbox(t.Context()), "unsupported shim version")
		})
	}
}

func TestAnImageThatIsThereIsNotPulled(t *testing.T) {
	d := newDaemon()
	d.images["pause:3.10"] = &runtimev1.Image{Id: "sha256:1"}
	r := start(t, d)
	require.NoError(t, r.Pull(t.Context(), "pause:3.10"))
	assert.Empty(t, d.pulled)
	require.NoError(t, r.Pull(t.Context(), "etcd:3.6"))
	assert.Equal(t, []string{"etcd:3.6"}, d.pulled)
	for image, want := range map[string]upgrade.Blocked{
		"absent:v1": {Reason: "ImageNotFound", Terminal: true},
		"away:v1":   {Reason: "ImagePullFailed"},
	} {
		var blocked *upgrade.Blocked
		require.ErrorAs(t, r.Pull(t.Context(), image), &blocked)
		assert.Equal(t, want.Reason, blocked.Reason)
		assert.Equal(t, want.Terminal, blocked.Terminal, "whether it may pass")
		assert.Contains(t, blocked.Message, image)
	}
}

func TestAContainerHasTheNameOfItsImageAlsoWhenItWasStartedByID(t *testing.T) {
	d := newDaemon()
	d.images["sha256:abc"] = &runtimev1.Image{RepoTags: []string{"registry.k8s.io/etcd:3.6.4-0"}}
	labels := map[string]string{labelContainer: "etcd", labelNamespace: "kube-system"}
	d.containers["x"] = &runtimev1.Container{Id: "x", Labels: labels, Image: &runtimev1.ImageSpec{Image: "sha256:abc"}}
	containers, err := start(t, d).Containers(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []Container{{ID: "x", Name: "etcd", Namespace: "kube-system", Image: "registry.k8s.io/etcd:3.6.4-0"}}, containers)
}

func TestTheTagOfAnImageName(t *testing.T) {
	for image, want := range map[string]string{
		"registry.k8s.io/kube-proxy:v1.37.2":  "v1.37.2",
		"mirror.corp:5000/kube-proxy:v1.37.2": "v1.37.2",
		"mirror.corp:5000/kube-proxy":         "",
		"etcd:3.6.4-0@sha256:0123":            "3.6.4-0",
		"etcd@sha256:0123":                    "",
		"sha256:0123456789abcdef":             "",
		"":                                    "",
	} {
		assert.Equal(t, want, Tag(image), image)
	}
}

func TestTheEffectiveConfigurationIsReadFromBothGenerations(t *testing.T) {
	for name, tc := range map[string]struct {
		config string
		want   Info
	}{
		"1.x":            {`{"sandboxImage":"pause:3.9","containerd":{"defaultRuntimeName":"runc","runtimes":{"runc":{"options":{"SystemdCgroup":true}}}}}`, Info{CgroupDriver: "systemd", SandboxImage: "pause:3.9"}},
		"2.x":            {`{"pinnedImages":{"sandbox":"pause:3.10"},"containerd":{"defaultRuntimeName":"runc","runtimes":{"runc":{"options":{"SystemdCgroup":false}}}}}`, Info{CgroupDriver: "cgroupfs", SandboxImage: "pause:3.10"}},
		"not containerd": {`not json`, Info{}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, infoFrom(&runtimev1.StatusResponse{Info: map[string]string{"config": tc.config}}))
		})
	}
}

func TestTheEndpointIsTheKubelets(t *testing.T) {
	for name, tc := range map[string]struct {
		files   map[string]string
		want    string
		problem string
	}{
		"its configuration": {files: map[string]string{"var/lib/kubelet/config.yaml": "containerRuntimeEndpoint: unix:///run/containerd/containerd.sock\n"}, want: "unix:///run/containerd/containerd.sock"},
		"its flags, without a scheme": {
			files: map[string]string{"var/lib/kubelet/config.yaml": "{}", "var/lib/kubelet/kubeadm-flags.env": "KUBELET_KUBEADM_ARGS=\"--container-runtime-endpoint=/run/containerd/containerd.sock --x=1\"\n"},
			want:  "unix:///run/containerd/containerd.sock",
		},
		"the only socket": {files: map[string]string{"var/run/crio/crio.sock": ""}, want: "unix:///var/run/crio/crio.sock"},
		"two sockets":     {files: map[string]string{"var/run/crio/crio.sock": "", "run/containerd/containerd.sock": ""}, problem: "several"},
		"none":            {},
		"a broken file":   {files: map[string]string{"var/lib/kubelet/config.yaml": "x: ["}, problem: "config.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for path, content := range tc.files {
				path = filepath.Join(root, path)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
				require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
			}
			got, err := Detect(root)
			if tc.problem != "" {
				require.ErrorContains(t, err, tc.problem)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
		})
	}
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "var/lib/kubelet"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "var/lib/kubelet/config.yaml"), []byte("containerRuntimeEndpoint: /run/s\ncgroupDriver: systemd\n"), 0o644))
	r, err := OfHost(root)
	require.NoError(t, err)
	assert.Equal(t, "unix:///run/s systemd", r.Endpoint+" "+r.CgroupDriver)
	_, _, err = New("tcp://127.0.0.1:1").Version(t.Context())
	require.ErrorContains(t, err, "socket")
}
