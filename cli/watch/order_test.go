package watch

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnOrderThatIsKeptIsTheOneThatSortingMakes(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	machines := map[string]row{}
	var kept order
	for round := range 400 {
		changes := 1 + random.Intn(5)
		if round%50 == 0 {
			changes = 2 * manyMoved
		}
		for range changes {
			name := fmt.Sprintf("worker-%d", random.Intn(200))
			kept.move(name)
			if random.Intn(6) == 0 {
				delete(machines, name)
			} else {
				machines[name] = row{class: class(random.Intn(len(classNames)))}
			}
		}
		want := slices.SortedFunc(maps.Keys(machines), func(a, b string) int {
			return cmp.Or(cmp.Compare(machines[a].class, machines[b].class), natural(a, b))
		})
		require.Equal(t, want, append([]string{}, kept.of(machines)...), "round %d", round)
	}
}
