package upgrade

// maxKubeletSkew is how many minors a kubelet may be behind the newest API server.
const maxKubeletSkew = 3

// checkSkew keeps the kubelet between the oldest API server and the skew behind the newest.
func (p *planner) checkSkew() error {
	if !p.want.kubeletChanges {
		return nil
	}
	want := p.want.kubelet
	oldest, newest, err := p.apiServers(want)
	if err != nil || !oldest.Known() {
		return err
	}
	if want.MinorsAhead(oldest) > 0 {
		return refuse(ReasonSkewViolated, "the target's kubelet %s is newer than the oldest API server %s: no kubelet may be; upgrade every control plane first", want.Raw(), oldest.Raw())
	}
	if behind := newest.MinorsAhead(want); behind > kubeletSkew(want) {
		return refuse(ReasonSkewViolated, "the target's kubelet %s is %d minors behind the newest API server %s: at most %d are allowed", want.Raw(), behind, newest.Raw(), kubeletSkew(want))
	}
	return nil
}

// apiServers are the oldest and the newest API server that a kubelet will meet.
func (p *planner) apiServers(kubelet Version) (oldest, newest Version, err error) {
	s := p.in.Assignment.Skew
	if s == nil || s.MinAPIServer == "" {
		if p.in.Standalone {
			p.find(warning(FindingSkewUnknown, "no API server of another host was asked whether it takes kubelet %s: see yourself that none is older, and state the oldest with --api-server-version", kubelet.Raw()))
			own, err := p.ownAPIServer()
			return own, own, err
		}
		return Version{}, Version{}, wait(ReasonSkewUnknown, "the assignment does not say which API servers are live, so kubelet %s could be newer than one of them", kubelet.Raw())
	}
	if oldest, err = parseObserved("oldest API server", s.MinAPIServer); err != nil {
		return Version{}, Version{}, err
	}
	newest, err = parseObserved("newest API server", firstOf(s.MaxAPIServer, s.MinAPIServer))
	if err == nil && p.in.Standalone { // a person has stated them, and need not have thought of this host's own
		return p.withOwnAPIServer(oldest, newest)
	}
	return oldest, newest, err
}

func (p *planner) withOwnAPIServer(oldest, newest Version) (Version, Version, error) {
	own, err := p.ownAPIServer()
	if err != nil || !own.Known() {
		return oldest, newest, err
	}
	if own.LessThan(oldest) {
		oldest = own
	}
	return oldest, later(newest, own), nil
}

// ownAPIServer is this host's API server once its own hop is done; unknown where it has none.
func (p *planner) ownAPIServer() (Version, error) {
	switch {
	case p.want.controlPlane.Known():
		return p.want.controlPlane, nil
	case p.in.Facts.APIServerSign() != APIServerOnHost:
		return Version{}, nil
	case p.in.Facts.Control == nil:
		return parseObserved("API server", "")
	}
	return parseObserved("API server", p.in.Facts.Control.APIServer)
}

// kubeletSkew is how far a kubelet may be behind: three minors, two before v1.25.
func kubeletSkew(kubelet Version) int {
	if v125, _ := ParseKubernetes("v1.25.0"); kubelet.MinorsAhead(v125) < 0 {
		return maxKubeletSkew - 1
	}
	return maxKubeletSkew
}
