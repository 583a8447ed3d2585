package credential

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

const requestTimeout = 30 * time.Second

// Requester asks an API server for tokens of one ServiceAccount.
type Requester struct {
	rest               rest.Interface
	namespace, machine string
	node               string
	life               time.Duration
}

// NewRequester makes a requester that asks as whom the configuration says, for tokens that
// live for about that long. With a node the tokens end with that Node.
func NewRequester(config *rest.Config, namespace, machine, node string, life time.Duration) (*Requester, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"}) // to read a refusal
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/api", &schema.GroupVersion{Version: "v1"}
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.UserAgent = "refit-agent"
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	return &Requester{rest: client, namespace: namespace, machine: machine, node: node, life: life}, nil
}

// boundTo is the object with which a token ends.
type boundTo struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Name       string `json:"name"`
}

type tokenSpec struct {
	Audiences         []string `json:"audiences"`
	ExpirationSeconds int64    `json:"expirationSeconds"`
	BoundObjectRef    *boundTo `json:"boundObjectRef,omitempty"`
}

// Request asks for a new token.
func (r *Requester) Request(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	spec := tokenSpec{Audiences: []string{}, ExpirationSeconds: int64(r.life.Seconds())}
	if r.node != "" {
		spec.BoundObjectRef = &boundTo{Kind: "Node", APIVersion: "v1", Name: r.node}
	}
	body, err := json.Marshal(map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec})
	if err != nil {
		return "", fmt.Errorf("encoding a token request: %w", err)
	}
	result := r.rest.Post().Namespace(r.namespace).Resource("serviceaccounts").Name(Account(r.machine)).SubResource("token").
		SetHeader("Content-Type", "application/json").Body(body).MaxRetries(0).Do(ctx)
	text, err := result.Raw()
	if err != nil {
		if told := result.Error(); told != nil {
			err = told
		}
		return "", fmt.Errorf("asking for a token of ServiceAccount %s/%s: %w", r.namespace, Account(r.machine), withoutBody(err))
	}
	var answer struct {
		Status struct {
			Token string `json:"token"`
		} `json:"status"`
	}
	if err := json.Unmarshal(text, &answer); err != nil || answer.Status.Token == "" {
		return "", fmt.Errorf("asking for a token of ServiceAccount %s/%s: the API server's answer has none in it", r.namespace, Account(r.machine))
	}
	return answer.Status.Token, nil
}

// withoutBody leaves an error of the connection to its cause, not to the request with all that was in it.
func withoutBody(err error) error {
	var failed *url.Error
	if errors.As(err, &failed) {
		return failed.Err
	}
	return err
}
