package simulation

import (
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/refit-dev/refit/pkg/upgrade"
)

func sameState(a, b upgrade.HostState) bool { return equality.Semantic.DeepEqual(a, b) }
