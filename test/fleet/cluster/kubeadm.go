package cluster

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/refit-dev/refit/test/fleet/daemon"
	"github.com/refit-dev/refit/test/fleet/hosts"
)

const criSocket = "unix:///run/containerd/containerd.sock"

// ignoredPreflight are the checks that cannot pass on a host that shares a kernel and its memory, by id.
var ignoredPreflight = []string{"SystemVerification"}

// kubeadmValues is what the templates below need.
type kubeadmValues struct {
	Name, Address, Endpoint   string
	Kubernetes, Registry      string
	PodSubnet, ServiceSubnet  string
	ClusterName, CgroupDriver string
	CRISocket                 string
	AuditPolicy, AuditDir     string
	IgnoredPreflight          []string
	ControlPlane              bool
	SkipCoreDNS               bool
	Token, CAHash             string
}

func valuesFor(h hosts.Host, fleet, kubernetes string) kubeadmValues {
	driver := "cgroupfs"
	if hosts.UnifiedCgroups() {
		driver = "systemd"
	}
	return kubeadmValues{
		Name: h.Name, Address: h.Address().String(), Endpoint: Endpoint(h.Site),
		Kubernetes: kubernetes, Registry: daemon.RegistryHost, ClusterName: fleet,
		PodSubnet: h.Site.PodSubnet().String(), ServiceSubnet: h.Site.ServiceSubnet().String(),
		CgroupDriver: driver, CRISocket: criSocket, IgnoredPreflight: ignoredPreflight,
		AuditPolicy: auditPolicyFile, AuditDir: filepath.Dir(AuditLog),
	}
}

// Endpoint is the one address of the cluster's API.
func Endpoint(s hosts.Site) string { return net.JoinHostPort(s.Gateway().String(), daemon.APIPort) }

// The timeouts are long: many hosts share few cores, and kubeadm gives up for good after one of them.
const timeoutsText = `timeouts:
  controlPlaneComponentHealthCheck: 8m0s
  discovery: 8m0s
  etcdAPICall: 8m0s
  kubeletHealthCheck: 8m0s
  kubernetesAPICall: 8m0s
  tlsBootstrap: 8m0s
`

const nodeText = `nodeRegistration:
  name: {{.Name}}
  criSocket: {{.CRISocket}}
  imagePullPolicy: IfNotPresent
  ignorePreflightErrors:
{{- range .IgnoredPreflight}}
  - {{.}}
{{- end}}
  kubeletExtraArgs:
  - name: node-ip
    value: {{.Address}}
`

// allocate-node-cidrs is off because the fleet's own CNI configuration says which host has which pod addresses.
const initText = `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint:
  advertiseAddress: {{.Address}}
  bindPort: 6443
` + nodeText + `{{if .SkipCoreDNS}}skipPhases:
- addon/coredns
{{end}}` + timeoutsText + `---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
clusterName: {{.ClusterName}}
kubernetesVersion: {{.Kubernetes}}
controlPlaneEndpoint: {{.Endpoint}}
imageRepository: {{.Registry}}
networking:
  podSubnet: {{.PodSubnet}}
  serviceSubnet: {{.ServiceSubnet}}
apiServer:
  extraArgs:
  - name: audit-policy-file
    value: {{.AuditPolicy}}
  - name: audit-log-path
    value: {{.AuditDir}}/audit.log
  - name: audit-log-maxsize
    value: "500"
  extraVolumes:
  - name: audit-policy
    hostPath: {{.AuditPolicy}}
    mountPath: {{.AuditPolicy}}
    readOnly: true
    pathType: File
  - name: audit-log
    hostPath: {{.AuditDir}}
    mountPath: {{.AuditDir}}
    pathType: DirectoryOrCreate
controllerManager:
  extraArgs:
  - name: allocate-node-cidrs
    value: "false"
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: {{.CgroupDriver}}
failCgroupV1: false
failSwapOn: false
localStorageCapacityIsolation: false
---
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
clusterCIDR: {{.PodSubnet}}
conntrack:
  maxPerCore: 0
  tcpEstablishedTimeout: 0s
  tcpCloseWaitTimeout: 0s
`

const joinText = `apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery:
  bootstrapToken:
    apiServerEndpoint: {{.Endpoint}}
    token: {{.Token}}
    caCertHashes:
    - {{.CAHash}}
{{- if .ControlPlane}}
controlPlane:
  localAPIEndpoint:
    advertiseAddress: {{.Address}}
    bindPort: 6443
{{- end}}
` + nodeText + timeoutsText

var (
	initTemplate = template.Must(template.New("init").Parse(initText))
	joinTemplate = template.Must(template.New("join").Parse(joinText))
)

func render(t *template.Template, v kubeadmValues) ([]byte, error) {
	var b strings.Builder
	if err := t.Execute(&b, v); err != nil {
		return nil, fmt.Errorf("writing kubeadm's %s configuration: %w", t.Name(), err)
	}
	return []byte(b.String()), nil
}
