// Package daemon is the one background process of a fleet, the machine's side of the fleet's network:
//
//	mirror     apt repositories, at http://mirror.fleet.test/
//	registry   container images, at registry.fleet.test
//	forwarder  the cluster's one API endpoint, before however many API servers
//	control    a unix socket on which the fleet program asks for readiness and tells of changes
//
// Hosts do not depend on it to live: they keep running without it, as machines do when their mirror is away.
package daemon
