package drain

import "time"

// Quick shortens every wait of a drain that no event would end.
func (d *Drainer) Quick() *Drainer {
	d.pace = pace{
		fallback: 200 * time.Millisecond, terminating: 100 * time.Millisecond,
		first: 10 * time.Millisecond, last: 50 * time.Millisecond, afterDelete: time.Second,
		hopeless: 300 * time.Millisecond, late: 50 * time.Millisecond, node: 50 * time.Millisecond,
	}
	return d
}

// WithoutFallback leaves only events to help a drain on.
func (d *Drainer) WithoutFallback() *Drainer {
	d.pace.fallback = time.Hour
	return d
}

// OrderOf is orderOf.
var OrderOf = orderOf
