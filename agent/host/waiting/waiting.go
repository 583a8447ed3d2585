// Package waiting carries what work on the host waits for to whoever tells people of it:
// who waits knows what for, and nothing of journals.
package waiting

import "context"

type key struct{}

// NewContext has a teller: it is called with what is waited for, and with "" when the wait is over.
func NewContext(ctx context.Context, tell func(what string)) context.Context {
	return context.WithValue(ctx, key{}, tell)
}

// For tells what is waited for. It may be told again and again.
func For(ctx context.Context, what string) {
	if tell, ok := ctx.Value(key{}).(func(string)); ok {
		tell(what)
	}
}

// Over tells that nothing is waited for any more.
func Over(ctx context.Context) { For(ctx, "") }
