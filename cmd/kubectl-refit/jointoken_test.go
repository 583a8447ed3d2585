package main

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/refit-dev/refit/agent/binding"
)

// What one program prints the other takes, and no file of the desk it was printed at is needed.
func TestAHostJoinsWithWhatJoinTokenPrints(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.crt")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	claims := fmt.Sprintf(`{"sub":"system:serviceaccount:site-7:refit-machine-h1","iat":%d,"exp":%d}`, time.Now().Unix(), time.Now().Add(time.Hour).Unix())
	token := "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"

	text, err := joinConfig(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAFile: ca}}, "site-7", token)
	require.NoError(t, err)
	require.NoError(t, os.Remove(ca))
	root := t.TempDir()
	place, err := binding.Host{Config: filepath.Join(root, "agent.yaml"), Etc: root, State: filepath.Join(root, "state")}.Join(text)
	require.NoError(t, err)
	assert.Equal(t, "Machine site-7/h1 at "+server.URL, place.String())

	_, err = joinConfig(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, "site-7", token)
	require.ErrorContains(t, err, "does not check the API server")
}
