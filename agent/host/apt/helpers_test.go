package apt

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/refit-dev/refit/agent/host/command"
)

func sum(data []byte) string {
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:])
}

func cmd(argv ...string) command.Command { return command.Command{Argv: argv} }
