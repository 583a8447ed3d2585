package setup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/refit-dev/refit/agent"
	"github.com/refit-dev/refit/agent/binding"
	"github.com/refit-dev/refit/agent/credential"
	"github.com/refit-dev/refit/agent/watch"
)

// joinRetry is how often an agent looks for the kubeconfig of a host that has not joined a
// cluster yet, and for whether a host that is bound to another one has left it.
const joinRetry = 30 * time.Second

// tokenLife is how long a token should live that renews itself: a host may be switched off,
// or without its API server, for a third of it.
const tokenLife = 14 * 24 * time.Hour

// session is an agent's way to its Machine.
type session struct {
	client  *watch.Client
	renewer *credential.Renewer // nil: the credential is somebody else's care
}

// connect waits for the host to join its cluster; nil without an error says that the context ended before.
func connect(ctx context.Context, config agent.Config, paths Paths) (*session, error) {
	log := logr.FromContextOrDiscard(ctx)
	for said := ""; ; {
		s, err := open(ctx, config, paths)
		var other *binding.OtherError
		if err == nil || !errors.Is(err, watch.ErrNoKubeconfig) && !errors.As(err, &other) {
			return s, err
		}
		if said != err.Error() {
			said = err.Error()
			log.Info("Waiting for the host to join its cluster", "reason", said)
		}
		select {
		case <-ctx.Done():
			return nil, nil
		case <-time.After(joinRetry):
		}
	}
}

// open makes the session of a host with a kubeconfig: the kubelet's, or one of a token.
func open(ctx context.Context, config agent.Config, paths Paths) (*session, error) {
	rest, err := watch.LoadConfig(config.Kubeconfig)
	if err != nil {
		return nil, err
	}
	name, renewer, err := identify(ctx, rest, config)
	if err != nil {
		return nil, err
	}
	return newSession(ctx, rest, paths, config.Namespace, name, renewer)
}

// identify says whose Machine it is, and who keeps the credential fresh.
func identify(ctx context.Context, rest *rest.Config, config agent.Config) (string, *credential.Renewer, error) {
	name := config.Machine
	if rest.BearerTokenFile == "" {
		if name != "" {
			return name, nil, nil
		}
		name, err := watch.NodeName(rest)
		return name, nil, err
	}
	claims, err := credential.Read(rest.BearerTokenFile)
	if err != nil {
		return "", nil, err
	}
	if name == "" {
		name = claims.Machine()
	}
	if claims.Machine() != name || claims.Namespace != config.Namespace {
		return "", nil, fmt.Errorf("the token in %s is of ServiceAccount %s/%s, not of %s/%s: join this host anew with what `kubectl refit join-token` prints",
			rest.BearerTokenFile, claims.Namespace, claims.Account, config.Namespace, credential.Account(name))
	}
	source, err := credential.NewRequester(rest, config.Namespace, name, "", tokenLife)
	if err != nil {
		return "", nil, err
	}
	logr.FromContextOrDiscard(ctx).Info("This host has a token of its own", "expires", claims.Expires.UTC().Format(time.RFC3339))
	return name, &credential.Renewer{File: rest.BearerTokenFile, Source: source, OwnToken: true}, nil
}

// newSession binds the host before anything of the cluster is believed.
func newSession(ctx context.Context, rest *rest.Config, paths Paths, namespace, name string, renewer *credential.Renewer) (*session, error) {
	place, err := binding.Of(rest, namespace, name)
	if err != nil {
		return nil, err
	}
	if err := binding.Bind(paths.State, place); err != nil {
		return nil, err
	}
	logr.FromContextOrDiscard(ctx).Info("Starting", "machine", name, "namespace", namespace, "server", rest.Host)
	client, err := watch.NewClient(rest, namespace, name)
	if err != nil {
		return nil, err
	}
	return &session{client: client, renewer: renewer}, nil
}
