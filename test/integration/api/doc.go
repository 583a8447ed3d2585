// Package api tests the CRDs, roles and admission policies against a real API server.
package api
