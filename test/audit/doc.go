// Package audit reads the audit log of an API server, and judges from it alone what
// drains have done: what a program says of itself plays no part.
//
//	srv := apiserver.Start(t, apiserver.WithAudit(audit.Bodies))
//	… drains, as a user of their own …
//	log := audit.Read(t, srv.AuditLog())
//	verdict := log.Judge(audit.Rules{Drainers: []string{"refit-drainer"}})
package audit
