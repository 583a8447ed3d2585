// Package access asks a real API server, under the manifests that Refit ships and with the Roles
// that a running coordinator has written, what each identity may do: every verb on every object of
// Refit, for real and as a dry run. The answers are two tables in testdata/matrix.golden:
// under the Roles as shipped, and under a role that gives everybody everything of
// Refit, so that what is refused there is refused by an admission policy.
//
//	go test -v ./test/integration/access           # prints the tables
//	UPDATE_GOLDEN=1 go test ./test/integration/access
package access
