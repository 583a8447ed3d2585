package facts

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// host is a host whose only file is the given one, with the content of the fuzz input.
func host(t *testing.T, path string, data []byte) *gathering {
	t.Helper()
	return gather(&Prober{Root: tree(t, map[string]string{path: string(data)})})
}

func FuzzAptConfiguration(f *testing.F) {
	f.Add("APT::Periodic::Unattended-Upgrade \"1\";\nUnattended-Upgrade::Automatic-Reboot \"true\";\nUnattended-Upgrade::Automatic-Reboot-Time \"02:00\";\n")
	f.Add("APT::Periodic::Unattended-Upgrade \"0\";\nAPT::Periodic::Unattended-Upgrade \"\";\n")
	f.Fuzz(func(t *testing.T, dump string) {
		found := unattendedIn(dump)
		require.LessOrEqual(t, len(found), 1+strings.Count(dump, "\n"))
		for _, c := range found {
			require.Equal(t, "unattended-upgrades", c.Name)
			require.NotContains(t, c.Detail, "\n")
		}
		require.Len(t, unattendedIn(dump+"\nAPT::Periodic::Unattended-Upgrade \"1\";\n"), len(found)+1)
	})
}

// What a person wrote as a secret never comes out, however it is spelt and whatever is around it.
func FuzzRedact(f *testing.F) {
	f.Add("--bootstrap-kubeconfig=/etc/x --token=abc --token abc -v 4", "--token", "s3cret")
	f.Add("KUBELET_EXTRA_ARGS=\"--client-password=x --cloud-config=/etc/c\"", "--registry-password", "--x")
	f.Add("--token", "--token-auth-file", "f")
	f.Fuzz(func(t *testing.T, line, flag, secret string) {
		args := strings.Fields(line)
		once := redact(args)
		require.Len(t, once, len(args))
		require.Equal(t, once, redact(once), "twice hides no more")
		hidden := len(secret) > 3 && !strings.HasPrefix(secret, "-") && !strings.Contains(line+flag+"REDACTED", secret)
		if !hidden || !strings.HasPrefix(flag, "--") || strings.ContainsAny(flag, "= ") || !isSecret(flag) {
			return
		}
		require.NotContains(t, strings.Join(redact(append(slices.Clone(args), flag+"="+secret)), " "), secret)
		require.NotContains(t, strings.Join(redact(append(slices.Clone(args), flag, secret)), " "), secret)
	})
}

func FuzzFlagLines(f *testing.F) {
	f.Add("[Service]\nEnvironment=\"KUBELET_KUBECONFIG_ARGS=--kubeconfig=/etc/kubernetes/kubelet.conf\"\n# --not=this\nExecStart=/usr/bin/kubelet $KUBELET_ARGS --token=abc\n")
	f.Add("KUBELET_EXTRA_ARGS=--token abc \\\n --v=4\n")
	f.Fuzz(func(t *testing.T, content string) {
		lines := flagLines(content)
		require.Equal(t, lines, flagLines(lines))
		for line := range strings.Lines(lines) {
			require.False(t, strings.HasPrefix(line, "#"))
			require.Regexp(t, flagLine, line)
		}
	})
}

// /proc gives a command line as it was given to exec: any bytes, with NUL in between.
func FuzzCommandLine(f *testing.F) {
	f.Add([]byte("/usr/bin/kubelet\x00--config=/var/lib/kubelet/config.yaml\x00--container-runtime-endpoint=unix:///run/containerd/containerd.sock\x00"))
	f.Add([]byte("kubelet\x00--container-runtime-endpoint\x00/run/crio/crio.sock\x00"))
	f.Add([]byte("kubelet\x00--container-runtime-endpoint"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		flags := flagsIn(data)
		require.LessOrEqual(t, len(flags), strings.Count(string(data), "\x00"))
		g := gather(&Prober{Root: t.TempDir()})
		g.facts.Kubelet = &upgrade.ComponentFacts{Flags: flags}
		endpoint, err := g.endpoint()
		require.NoError(t, err)
		require.False(t, strings.HasPrefix(endpoint, "/"), "a socket has its scheme")
		nameByEndpoint(endpoint)
	})
}

func FuzzContainerdConfiguration(f *testing.F) {
	f.Add("version = 3\n[plugins.'io.containerd.cri.v1.images'.pinned_images]\n  sandbox = 'registry.k8s.io/pause:3.10'\n", "registry.k8s.io/pause:3.9")
	f.Add("[plugins.\"io.containerd.grpc.v1.cri\"]\n  sandbox_image = \"registry.k8s.io/pause:3.8\"\n", "p")
	f.Add("[plugins.other]\n sandbox = 'no'\n", "")
	f.Fuzz(func(t *testing.T, dump, image string) {
		found := sandboxImageIn(dump)
		require.Contains(t, dump, found)
		require.False(t, strings.ContainsAny(found, `"'`))
		if image == "" || strings.ContainsAny(image, "\"'\n") || found != "" {
			return
		}
		require.Equal(t, image, sandboxImageIn(dump+"\n[plugins.'io.containerd.cri.v1.images']\n  sandbox_image = '"+image+"'\n"))
	})
}

func FuzzProgramVersion(f *testing.F) {
	f.Add("containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+b1\n")
	f.Add("crio version 1.30.2\nGitCommit: abc\n")
	f.Add("v. 1 1. .1")
	f.Fuzz(func(t *testing.T, output string) {
		version, err := programVersion(output)
		if err != nil {
			require.Less(t, len(err.Error()), 2000, "not the whole output")
			return
		}
		require.Contains(t, strings.Fields(output), version)
		require.Contains(t, version, ".")
	})
}

// The kubelet's configuration goes into the facts whole, so it must be possible to print.
func FuzzKubeletConfiguration(f *testing.F) {
	f.Add([]byte("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 110\nevictionHard: {memory.available: 5%}\nstaticPodURLHeader: {Authorization: [secret]}\n"))
	f.Add([]byte("a: .nan\nb: .inf\n1: x\n"))
	f.Add([]byte("- list\n"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		g, k := host(t, "var/lib/kubelet/config.yaml", data), &upgrade.ComponentFacts{Flags: []string{"--config-dir=" + upgrade.KubeletDropInDir}}
		require.NoError(t, os.MkdirAll(g.path(upgrade.KubeletDropInDir), 0o755))
		require.NoError(t, os.WriteFile(g.path(upgrade.KubeletDropInPath), data, 0o600)) // the same once more, merged into itself
		err := g.kubeletConfiguration(k)
		config := k.Configuration
		if err != nil {
			require.ErrorContains(t, err, "/var/lib/kubelet/config.yaml")
			return
		}
		require.NotContains(t, config, "staticPodURLHeader")
		_, err = json.Marshal(upgrade.Facts{Kubelet: k})
		require.NoError(t, err)
	})
}

// What a unit sets is repeated in Refit's drop-in: no word of it may get lost or be added.
func FuzzConfigArgs(f *testing.F) {
	f.Add("[Service]\nEnvironment=\"KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml\"\nExecStart=/usr/bin/kubelet $KUBELET_CONFIG_ARGS\n")
	f.Add("[Service]\nEnvironment='A=b' KUBELET_CONFIG_ARGS=--config=/x \\\n  B=c\nEnvironmentFile=-/etc/default/kubelet\nExecStart=x ${KUBELET_CONFIG_ARGS}\n")
	f.Add("[Service]\nEnvironment=\nEnvironment=\"\\\"\nExecStart=$KUBELET_CONFIG_ARGS")
	f.Fuzz(func(t *testing.T, text string) {
		g := host(t, "usr/lib/systemd/system/kubelet.service", []byte(text))
		args, err := g.configArgs([]string{"/usr/lib/systemd/system/kubelet.service"})
		if err != nil || args == nil {
			return
		}
		written := upgrade.UnitDropIn(args.Value)
		if strings.ContainsAny(args.Value, "\n\r%$") || !utf8.ValidString(args.Value) || strings.ContainsFunc(args.Value, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return // nothing that a kubelet is started with
		}
		require.NoError(t, upgrade.CheckUnitDropIn(written))
		require.NoError(t, os.WriteFile(g.path("drop-in.conf"), []byte(written), 0o600))
		again, err := g.configArgs([]string{"/usr/lib/systemd/system/kubelet.service", "/drop-in.conf"})
		require.NoError(t, err)
		require.Equal(t, strings.TrimSpace(args.Value+" --config-dir="+upgrade.KubeletDropInDir), again.Value)
	})
}

func pair(f *testing.F, name string) (certificate, key []byte) {
	f.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(f, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Unix(2000000000, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(f, err)
	secret, err := x509.MarshalECPrivateKey(private)
	require.NoError(f, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})
}

func FuzzCertificate(f *testing.F) {
	certificate, key := pair(f, "system:node:worker-1")
	f.Add(certificate)
	f.Add(append(slices.Clone(key), certificate...))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := parseCertificate(data)
		require.Equal(t, err == nil, c != nil)
		if !strings.Contains(string(data), "-----") {
			c, err = parseCertificate(append(append(slices.Clone(data), '\n'), certificate...))
			require.NoError(t, err, "what stands before it does no harm")
			require.Equal(t, "system:node:worker-1", c.Subject.CommonName)
		}
		g := host(t, "etc/kubernetes/pki/apiserver.crt", data)
		if err := g.certificates(t.Context()); err != nil {
			require.ErrorContains(t, err, "apiserver.crt")
		}
		_, err = json.Marshal(g.facts.Certs)
		require.NoError(t, err, "a year that JSON has no room for")
	})
}

func FuzzKubeconfig(f *testing.F) {
	f.Add([]byte("apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\nusers: [{name: a, user: {client-certificate: /var/lib/kubelet/pki/kubelet-client-current.pem}}]\n"))
	f.Add([]byte("apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {user: a}}]\nusers: [{name: a, user: {client-certificate: ../../../x}}]\n"))
	f.Add([]byte("apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a}, {name: a}]\nusers: null\n"))
	f.Add([]byte("kind: ["))
	f.Fuzz(func(t *testing.T, data []byte) {
		g := host(t, kubeletKubeconfig, data)
		err := g.node(t.Context())
		require.Equal(t, err == nil, g.facts.Node != nil, "a node whose name is not known says why: %v", err)
		_ = g.certificates(t.Context())
	})
}

func FuzzHold(f *testing.F) {
	f.Add([]byte("backup runs until noon\n"))
	f.Add([]byte(strings.Repeat("Wartung bis Freitag für Ärzte ", 40)))
	f.Add([]byte{0xff, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		g := host(t, HoldPath, data)
		require.NoError(t, g.hold(t.Context()))
		require.NotNil(t, g.facts.Hold, "whatever is in it, it holds")
		require.LessOrEqual(t, len(g.facts.Hold.Message), 510)
		if utf8.Valid(data) {
			require.True(t, utf8.ValidString(g.facts.Hold.Message))
		}
	})
}

func FuzzRebootFiles(f *testing.F) {
	f.Add([]byte("linux-image-6.1.0-30-amd64\nlibc6\nlibc6\n"), "6.1.0-30-amd64")
	f.Add([]byte("\n\n"), "0-rescue-abc")
	f.Fuzz(func(t *testing.T, data []byte, kernel string) {
		g := host(t, "run/reboot-required.pkgs", data)
		names, err := g.rebootPackages("run")
		require.NoError(t, err)
		require.True(t, slices.IsSorted(names))
		require.Len(t, slices.Compact(slices.Clone(names)), len(names))
		require.True(t, strings.HasSuffix(kernel, flavour(kernel)))
	})
}

func FuzzSmallFile(f *testing.F) {
	f.Add([]byte("0123456789abcdef\n"))
	f.Add([]byte("\n\r\n x \n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		line, err := host(t, filepath.Join("etc", "machine-id"), data).line("etc/machine-id")
		require.NoError(t, err)
		require.NotContains(t, line, "\n")
		require.Equal(t, strings.TrimSpace(line), line)
	})
}
