package hostfake

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// certificates of kubeadm, as the end of each.
var certificates = []string{
	"/etc/kubernetes/admin.conf", "/etc/kubernetes/scheduler.conf", "/etc/kubernetes/controller-manager.conf",
	"/etc/kubernetes/pki/apiserver.crt", "/etc/kubernetes/pki/etcd/server.crt",
}

// loads is the file that a component reads when it starts.
var loads = map[string]string{
	"etcd": "/etc/kubernetes/pki/etcd/server.crt", "kube-apiserver": "/etc/kubernetes/pki/apiserver.crt",
	"kube-controller-manager": "/etc/kubernetes/controller-manager.conf", "kube-scheduler": "/etc/kubernetes/scheduler.conf",
}

// RenewCertificates writes one after the other.
func (k kubeadm) RenewCertificates(context.Context) error {
	return k.h.call("kubeadm certs renew", func() error {
		for _, file := range certificates {
			if _, ok := k.h.Files[file]; !ok {
				continue
			}
			k.h.Files[file] = File{k.h.RenewedUntil.UTC().Format(time.RFC3339), 0o600}
			k.h.amid("kubeadm certs renew at " + file)
		}
		return nil
	})
}

type staticPods struct{ h *Host }

func (s staticPods) Container(_ context.Context, component string) (id string, err error) {
	err = s.h.call("container of "+component, func() error {
		if s.h.Pods[component] != "" {
			id = fmt.Sprintf("%s-%d", component, s.h.Containers[component])
		}
		return runtime(s).up()
	})
	return id, err
}

// Stop ends a container; a kubelet that runs starts the next one, with what is on disk.
func (s staticPods) Stop(_ context.Context, container string) error {
	return s.h.call("stop "+container, func() error {
		for _, c := range components {
			if container != fmt.Sprintf("%s-%d", c, s.h.Containers[c]) {
				continue
			}
			delete(s.h.Pods, c)
			if s.h.Active["kubelet.service"] {
				s.h.run(c)
			}
		}
		return nil
	})
}

func (s staticPods) Answers(_ context.Context, component string) error {
	return s.h.call("answer of "+component, func() error {
		switch {
		case s.h.Pods[component] == "":
			return errors.New("connection refused")
		case s.h.Loaded[component] != s.h.Files[loads[component]].Content:
			return errors.New("it serves another certificate than the one on disk")
		}
		return nil
	})
}
