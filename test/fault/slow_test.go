package fault

import (
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Two packages of the host's own making, in two versions each. Their maintainer scripts
// wait where a file says so, once, and their second versions are larger than a small disk.
const (
	slow  = "refit-slow"
	quick = "refit-quick"
)

const makePackages = `
set -e
make() { # NAME VERSION KILOBYTES
  d=$(mktemp -d)
  mkdir -p $d/DEBIAN $d/opt/$1
  head -c $(($3 * 1024)) /dev/urandom >$d/opt/$1/data
  printf 'Package: %s\nVersion: %s\nArchitecture: all\nMaintainer: nobody <nobody@example.com>\nDescription: test\n' $1 $2 >$d/DEBIAN/control
  for script in preinst postinst prerm postrm; do
    printf '#!/bin/sh\nwait=/var/tmp/slow-%s-%s\nif [ -e $wait ]; then rm $wait; touch $wait-waits; sleep 600; fi\nexit 0\n' $1 $script >$d/DEBIAN/$script
    chmod 0755 $d/DEBIAN/$script
  done
  dpkg-deb --root-owner-group -Znone -b $d /var/cache/apt/archives/$1_$2_all.deb >/dev/null
  rm -r $d
}
if [ ! -e /var/cache/apt/archives/refit-quick_2.0_all.deb ]; then
  for name in refit-slow refit-quick; do make $name 1.0 16; make $name 2.0 4096; done
fi
dpkg --force-downgrade -i /var/cache/apt/archives/refit-slow_1.0_all.deb /var/cache/apt/archives/refit-quick_1.0_all.deb >/dev/null
rm -f /var/tmp/slow-*
`

// slowPlan is an operation on the two packages, which are at their first version now.
func (m *machine) slowPlan() upgrade.Plan {
	m.t.Helper()
	m.sh(makePackages)
	var changes []upgrade.PackageChange
	for _, name := range []string{slow, quick} {
		digest, _, _ := strings.Cut(m.sh("sha256sum /var/cache/apt/archives/"+name+"_2.0_all.deb"), " ")
		m.sh(fmt.Sprintf("mkdir -p %[1]s/stage; cp /var/cache/apt/archives/%[2]s_2.0_all.deb %[1]s/stage/%[3]s.deb", stateDir, name, digest))
		changes = append(changes, upgrade.PackageChange{
			Name: name, From: "1.0", To: "2.0", File: digest + ".deb", SHA256: digest, URI: "http://mirror.fleet.test/" + name + ".deb",
		})
	}
	return sealed(m.t, upgrade.Plan{
		AssignmentID: "8-abc", Type: v1alpha1.OperationUpgrade, Disruption: v1alpha1.DisruptionNone,
		Stage: &upgrade.Step{Kind: upgrade.StepStage, Packages: changes},
		Steps: []upgrade.Step{
			{Kind: upgrade.StepPreflight, Expect: &upgrade.Expectation{Packages: changes}},
			{Kind: upgrade.StepInstallPackages, Packages: changes},
			{Kind: upgrade.StepVerify, Expect: &upgrade.Expectation{Packages: changes}},
		},
	})
}

// slowAt is the version of both packages, which have to be whole and alike.
func (m *machine) slowAt() string {
	m.t.Helper()
	require.Empty(m.t, m.sh("dpkg --audit"), "the package database is whole")
	versions := map[string]bool{}
	last := ""
	for line := range strings.Lines(m.sh("dpkg-query --show --showformat '${Version} ${db:Status-Status}\\n' " + slow + " " + quick)) {
		version, status, _ := strings.Cut(strings.TrimSpace(line), " ")
		require.Equal(m.t, "installed", status)
		versions[version], last = true, version
	}
	require.Len(m.t, versions, 1, "one transaction: both or none")
	for _, name := range []string{slow, quick} {
		require.NotEmpty(m.t, m.sh("find /opt/"+name+"/data -size +"+map[string]string{"1.0": "1k", "2.0": "4000k"}[last]), "the files are of the version that dpkg says")
	}
	return last
}
