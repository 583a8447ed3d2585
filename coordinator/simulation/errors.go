package simulation

import "errors"

// InputError says what is wrong with a scenario: the object, its field, and what to do.
type InputError struct {
	// Object such as Simulation/pool or Machine/w1; "" for the Simulation.
	Object, Field, Message string
	// Where it was read, such as pool.yaml:12; "" where nothing was.
	Where string
}

// Error implements error.
func (e *InputError) Error() string {
	object := e.Object
	if object == "" {
		object = Kind
	}
	text := object + ": " + e.Message
	if e.Field != "" {
		text = object + ": " + e.Field + ": " + e.Message
	}
	if e.Where != "" {
		text = e.Where + ": " + text
	}
	return text
}

// located says where what is wrong was read.
func located(err error, where func(object, field string) string) error {
	var input *InputError
	if where != nil && errors.As(err, &input) && input.Where == "" {
		input.Where = where(input.Object, input.Field)
	}
	return err
}
