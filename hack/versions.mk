# Versions of the tools that are not in go.mod's tool lines.
GOLANGCI_LINT_VERSION := v2.15.0
GOVULNCHECK_VERSION   := v1.9.0
