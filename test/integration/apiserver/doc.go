// Package apiserver starts a real etcd and a real kube-apiserver on loopback for
// tests: RBAC and the Node authorizer, NodeRestriction, service account keys, the
// CRDs of this repository, and client certificates for whichever user and group a
// test wants to be.
//
//	srv := apiserver.Start(t)                  // stopped, and its files removed, with the test
//	admin := srv.Admin()                       // *rest.Config, system:masters
//	kubelet := srv.As(t, "system:node:w1", "system:nodes")
//	srv.StopAPI(); srv.StartAPI(ctx)           // an outage: same address, same data
//
// There is no controller manager: nothing creates default service accounts,
// collects garbage or makes Nodes ready; a test that needs such a thing writes it.
//
// The programs come from the directory REFIT_TEST_BIN, else from the fleet cache.
// Without them tests are skipped, unless REFIT_REQUIRE_API=1 makes that a failure.
package apiserver
