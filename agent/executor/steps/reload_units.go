package steps

import "context"

func reloadUnits(ctx context.Context, r Run) (string, error) {
	return "", r.Host.Units.Reload(ctx)
}
