package facts

import "context"

// etcd is asked through the member on this host, or through those that the API server names.
func (g *gathering) etcd(ctx context.Context) (err error) {
	if g.Etcd == nil {
		return nil
	}
	g.facts.Etcd, err = g.Etcd.Look(ctx)
	return err //nolint:wrapcheck // says whom it asked
}
