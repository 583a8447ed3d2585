package files

import (
	"errors"
	"syscall"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// ReasonNoSpace says that a file system has no room left, or a quota is used up.
const ReasonNoSpace = upgrade.FindingNoSpace

// NoSpace is what an error comes to whose cause is a full file system, wherever it was
// met; nil for any other.
func NoSpace(err error) *upgrade.Blocked {
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return nil
	}
	return &upgrade.Blocked{Reason: ReasonNoSpace, Message: err.Error() + "; free some space there, then it goes on by itself"}
}
