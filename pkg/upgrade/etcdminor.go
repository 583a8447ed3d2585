package upgrade

// EtcdMinor refuses a kubeadm that would bring an etcd more than one minor ahead of the one in
// the manifest: etcd moves its data one minor at a time. What is no version is not judged here.
func EtcdMinor(now, coming string) *Blocked {
	have, okHave := ParseRuntime(now)
	want, okWant := ParseRuntime(coming)
	if !okHave || !okWant || want.Version.MinorsAhead(have.Version) <= 1 {
		return nil
	}
	return refuse(ReasonEtcdMinorSkipped, "etcd of this host is %s and the kubeadm of this hop brings %s: etcd moves its data one minor at a time; upgrade etcd to the minor in between first, then retry", now, coming)
}
