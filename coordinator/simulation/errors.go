package simulation

import "fmt"

// InputError says what is wrong with a scenario: the object, its field, and what to do.
type InputError struct {
	// Object such as Simulation/pool or Machine/w1; "" for the Simulation.
	Object, Field, Message string
}

// Error implements error.
func (e *InputError) Error() string {
	object := e.Object
	if object == "" {
		object = Kind
	}
	if e.Field == "" {
		return fmt.Sprintf("%s: %s", object, e.Message)
	}
	return fmt.Sprintf("%s: %s: %s", object, e.Field, e.Message)
}
