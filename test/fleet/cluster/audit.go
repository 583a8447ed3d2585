package cluster

// AuditLog is where each control plane's API server writes down every request that it
// has answered: what a test asserts of requests is read there, not told by the program under test.
const AuditLog = "/var/log/kubernetes/audit/audit.log"

const auditPolicyFile = "/etc/fleet/audit-policy.yaml"

// A request is written down once, when it has ended; a watch also when it begins.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`
