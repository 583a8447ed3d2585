package hostpolicy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWithoutAFileOnlyWhatTheHostHasIsASource(t *testing.T) {
	var none Policy
	assert.Nil(t, none.Source(SourceWish{Name: "kubernetes", URI: "https://m/v1.37/", SignedBy: "k", Configured: true, KeyKnown: true}))
	assert.Equal(t, `package source "x" at "https://evil/", which is not configured on this host, is outside sources.allow of this host's policy: take it out of spec, or have the host's owner add its URI or host in /etc/refit/policy.yaml`,
		none.Source(SourceWish{Name: "x", URI: "https://evil/", SignedBy: "k", KeyKnown: true}).String())
	assert.Equal(t, "sources.keyrings", none.Source(SourceWish{Name: "x", URI: "https://m/", SignedBy: "other", Configured: true}).Field)
	assert.Nil(t, none.Package("openssl"))
	assert.Nil(t, none.Hook("any"))
	assert.Nil(t, none.Step("Reboot"))
	assert.False(t, none.Removes("openssh-server"))
	assert.Contains(t, none.Removal("openssh-server").String(), "packages.remove")
}

func TestAnAllowedPlaceIsNotLeft(t *testing.T) {
	p := Policy{Sources: Sources{Allow: []string{"mirror.corp", "https://pkgs.corp/k8s/", "https://exact.corp:8443/x"}, New: true, Keyrings: []string{"k"}}}
	for uri, allowed := range map[string]bool{
		"https://mirror.corp/": true, "http://mirror.corp/any/": true, "https://MIRROR.corp": true, "https://mirror.corp:8443/": false,
		"https://mirror.corp.evil/": false, "https://evil/mirror.corp": false, "https://mirror.corp@evil/": false, "https://u:p@mirror.corp/": false,
		"https://mirror.corp/?x=1": false, "https://mirror.corp/#x": false, "file://mirror.corp/etc": false, "ftp://mirror.corp/": false,
		"https://pkgs.corp/k8s/v1.37/deb/": true, "https://pkgs.corp/k8s": true, "http://pkgs.corp/k8s/": false, "https://pkgs.corp/k8s-evil/": false,
		"https://pkgs.corp/k8s/../evil/": false, "https://pkgs.corp/k8s/%2e%2e/evil/": false, "https://pkgs.corp/k8s/..%2fevil/": false, "https://pkgs.corp/k8s//evil": false,
		"https://exact.corp:8443/x": true, "https://exact.corp/x": false, "https://mirror.corp/\x00": false, "https://mirror.corp/a\nb": false, `https://mirror.corp/\..\x`: false, "": false,
	} {
		assert.Equal(t, allowed, p.Source(SourceWish{Name: "s", URI: uri, SignedBy: "k", New: true}) == nil, uri)
	}
}

func TestANewSourceIsAllowedApartFromItsPlace(t *testing.T) {
	p := Policy{Sources: Sources{Allow: []string{"mirror.corp"}}}
	wish := SourceWish{Name: "s", URI: "https://mirror.corp/", KeyKnown: true}
	assert.Nil(t, p.Source(wish), "one that is there may point to it")
	wish.New = true
	require.NotNil(t, p.Source(wish))
	assert.Equal(t, "sources.new", p.Source(wish).Field)
}

func TestAPasswordIsNotRepeated(t *testing.T) {
	assert.NotContains(t, Policy{}.Source(SourceWish{Name: "s", URI: "https://u:secret@m/"}).String(), "secret")
}

func TestADenyWins(t *testing.T) {
	p := Policy{Packages: Packages{Allow: []string{"lib*", "openssl"}, Deny: []string{"libc*"}, Remove: []string{"dropbear*"}}}
	assert.Nil(t, p.Package("libssl3"))
	assert.Equal(t, "packages.deny", p.Package("libc6").Field)
	assert.Equal(t, "packages.allow", p.Package("telnet").Field)
	assert.True(t, p.Removes("dropbear-bin"))
	assert.Nil(t, p.Removal("dropbear"))
}

func TestAnEmptyListAllowsNothing(t *testing.T) {
	p, err := Decode([]byte("hooks: {allow: []}\npackages: {allow: []}\n"))
	require.NoError(t, err)
	assert.NotNil(t, p.Hook("any"))
	assert.NotNil(t, p.Package("any"))
}

func TestSettingsThatAreRefusedAreAllowedOneByOne(t *testing.T) {
	config := map[string]any{"tlsMinVersion": "VersionTLS13", "authorization": map[string]any{"mode": "AlwaysAllow"}, "maxPods": 5.0, "readOnlyPort": 10255.0, "volumePluginDir": "/tmp/x"}
	assert.Equal(t, []string{"authorization", "readOnlyPort", "tlsMinVersion", "volumePluginDir"}, Policy{}.KubeletFields(config))
	assert.Equal(t, []string{"authorization", "readOnlyPort", "volumePluginDir"}, Policy{Kubelet: Kubelet{Allow: []string{"tlsMinVersion"}}}.KubeletFields(config))
	assert.Empty(t, Policy{}.KubeletFields(map[string]any{"readOnlyPort": 0.0}), "off is what it is")
}
