package simulation

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Duration is a fixed time, or one that is drawn from a lognormal distribution.
type Duration struct {
	Median time.Duration
	Sigma  float64
}

type drawn struct {
	Median metav1.Duration `json:"median"`
	Sigma  float64         `json:"sigma,omitempty"`
}

var errDuration = errors.New(`give a duration such as 90s, or {median: 5m, sigma: 0.5} for one that is drawn`)

// UnmarshalJSON reads 90s, or {median: 90s, sigma: 0.5}.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		fixed, err := time.ParseDuration(text)
		if err != nil || fixed < 0 {
			return fmt.Errorf("%q is no duration: %w", text, errDuration)
		}
		*d = Duration{Median: fixed}
		return nil
	}
	var fields map[string]json.RawMessage
	var from drawn
	if json.Unmarshal(data, &fields) != nil || json.Unmarshal(data, &from) != nil {
		return fmt.Errorf("%s is no duration: %w", data, errDuration)
	}
	for name := range fields {
		if name != "median" && name != "sigma" {
			return fmt.Errorf("there is no field %s: %w", name, errDuration)
		}
	}
	if from.Median.Duration <= 0 || from.Sigma < 0 || from.Sigma > 5 {
		return fmt.Errorf("median has to be above 0, and sigma from 0 to 5: %w", errDuration)
	}
	*d = Duration{Median: from.Median.Duration, Sigma: from.Sigma}
	return nil
}

// MarshalJSON writes what UnmarshalJSON reads.
func (d Duration) MarshalJSON() ([]byte, error) {
	if d.Sigma == 0 {
		return json.Marshal(d.Median.String()) //nolint:wrapcheck // a string is always encoded
	}
	return json.Marshal(drawn{metav1.Duration{Duration: d.Median}, d.Sigma}) //nolint:wrapcheck // see above
}

// phase of a machine whose duration is asked for.
type phase string

const (
	phaseStage  phase = "stage"
	phaseDrain  phase = "drain"
	phaseApply  phase = "apply"
	phaseVerify phase = "verify"
	phasePods   phase = "pods"
)

func (p *PhaseDurations) of(ph phase) *Duration {
	switch ph {
	case phaseStage:
		return p.Stage
	case phaseDrain:
		return p.Drain
	case phaseApply:
		return p.Apply
	case phaseVerify:
		return p.Verify
	case phasePods:
		return p.Pods
	}
	return nil
}

var defaults = map[phase]time.Duration{
	phaseStage: DefaultStage, phaseDrain: DefaultDrain, phaseApply: DefaultApply, phaseVerify: DefaultVerify, phasePods: DefaultPods,
}

// durations draws how long things take: by seed, name, phase and how often it was asked, so
// that what happens to one machine does not change the luck of another.
type durations struct {
	spec      Durations
	selectors []labels.Selector
	seed      uint64
	asked     map[string]uint64
}

func newDurations(spec Durations, seed uint64) (*durations, error) {
	d := &durations{spec: spec, seed: seed, asked: map[string]uint64{}}
	for i, o := range spec.Overrides {
		selector := labels.Nothing()
		if o.Selector != nil {
			var err error
			if selector, err = metav1.LabelSelectorAsSelector(o.Selector); err != nil {
				return nil, &InputError{Field: fmt.Sprintf("spec.durations.overrides[%d].selector", i), Message: err.Error()}
			}
		}
		d.selectors = append(d.selectors, selector)
	}
	return d, nil
}

// known says which override is about a machine that is not there.
func (d *durations) known(there func(name string) bool) error {
	for i, o := range d.spec.Overrides {
		for k, name := range o.Machines {
			if !there(name) {
				return &InputError{Field: fmt.Sprintf("spec.durations.overrides[%d].machines[%d]", i, k),
					Message: fmt.Sprintf("there is no Machine/%s in the scenario: name one, or take some by their labels with selector", name)}
			}
		}
	}
	return nil
}

func (d *durations) of(ph phase, m *v1alpha1.Machine) time.Duration {
	chosen := d.spec.of(ph)
	for i := range d.spec.Overrides {
		o := &d.spec.Overrides[i]
		named := slices.Contains(o.Machines, m.Name) || d.selectors[i].Matches(labels.Set(m.Labels))
		if own := o.of(ph); named && own != nil {
			chosen = own
		}
	}
	if chosen == nil {
		return defaults[ph]
	}
	return d.draw(*chosen, string(ph)+"/"+m.Name)
}

func (d *durations) draw(from Duration, key string) time.Duration {
	if from.Sigma == 0 {
		return from.Median
	}
	d.asked[key]++
	h := fnv.New64a()
	fmt.Fprint(h, key)
	random := rand.New(rand.NewPCG(d.seed, h.Sum64()+d.asked[key]))
	took := time.Duration(float64(from.Median) * math.Exp(from.Sigma*random.NormFloat64()))
	return max(took.Round(time.Second), time.Second)
}
