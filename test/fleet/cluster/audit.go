package cluster

// AuditLog is where each control plane's API server writes down every request that it
// has answered, by the policy audit.Bodies: what a test asserts of requests is read there,
// not told by the program under test.
const AuditLog = "/var/log/kubernetes/audit/audit.log"

const auditPolicyFile = "/etc/fleet/audit-policy.yaml"
