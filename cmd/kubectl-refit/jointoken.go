package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/refit-dev/refit/pkg/usage"
)

type joinTokenOptions struct {
	*command
	life time.Duration
}

func newJoinToken(c *command) *cobra.Command {
	o := &joinTokenOptions{command: c}
	cmd := &cobra.Command{
		Use:   "join-token MACHINE",
		Short: "Print what a host joins a management cluster with: its first token",
		Long: `Prints a kubeconfig with a token of the ServiceAccount refit-machine-MACHINE, for refit-agent join on that host. It
is a secret: the host can be spoken for with it. The agent renews it from then on; the address and the authority are
those of the connection that this command has, so use --server or --context where the host reaches the cluster by
another name. In the cluster of its own Node a host needs no token.

A token that was lost is void once its ServiceAccount is deleted: the coordinator makes a new one at once.`,
		Example: "  kubectl refit join-token edge-7 -n site-7 | ssh edge-7 refit-agent join -f -",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	cmd.Flags().DurationVar(&o.life, "duration", 24*time.Hour, "How long the token counts unless the agent renews it; the API server may give less")
	return cmd
}

func (o *joinTokenOptions) run(ctx context.Context, machine string) error {
	if o.life < 10*time.Minute {
		return usage.Errorf("--duration %s: 10m is the least that an API server gives", o.life)
	}
	config, err := o.flags.ToRESTConfig()
	if err != nil {
		return fmt.Errorf("finding the cluster: %w", err)
	}
	kube, err := o.kube()
	if err != nil {
		return err
	}
	seconds := int64(o.life.Seconds())
	account := "refit-machine-" + machine
	answer, err := kube.CoreV1().ServiceAccounts(o.namespace()).CreateToken(ctx, account,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	if apierrors.IsNotFound(err) {
		return refused{fmt.Sprintf("there is no ServiceAccount %s/%s: the coordinator makes it once Machine %s exists, where agents have tokens (its flags --workload-kubeconfig, or --agent-identity)",
			o.namespace(), account, machine)}
	}
	if err != nil {
		return fmt.Errorf("asking for a token of ServiceAccount %s/%s: %w", o.namespace(), account, err)
	}
	text, err := joinConfig(config, o.namespace(), answer.Status.Token)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.err, "The token counts until %s; on the host: refit-agent join -f FILE\n", answer.Status.ExpirationTimestamp.UTC().Format(time.RFC3339))
	_, err = o.out.Write(text)
	return err //nolint:wrapcheck // a closed pipe says so itself
}

// joinConfig carries all that a host needs, and names no file of this desk.
func joinConfig(config *rest.Config, namespace, token string) ([]byte, error) {
	if config.Insecure {
		return nil, usage.Errorf("this connection does not check the API server (insecure-skip-tls-verify): a host must, so use a kubeconfig with the cluster's authority")
	}
	config = rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("reading the authority of %s: %w", config.Host, err)
	}
	out := clientcmdapi.NewConfig()
	out.Clusters["refit"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData, TLSServerName: config.ServerName}
	out.AuthInfos["refit"] = &clientcmdapi.AuthInfo{Token: token}
	out.Contexts["refit"] = &clientcmdapi.Context{Cluster: "refit", AuthInfo: "refit", Namespace: namespace}
	out.CurrentContext = "refit"
	text, err := clientcmd.Write(*out)
	if err != nil {
		return nil, fmt.Errorf("encoding the kubeconfig: %w", err)
	}
	return text, nil
}
