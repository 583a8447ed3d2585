package etcd

import (
	"regexp"
	"strconv"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// alarmText is an alarm among the errors of a member's status. It is asked for there, since
// etcd answers the question for all alarms with an entry of its log, and not without a quorum.
var alarmText = regexp.MustCompile(`memberID:\s*([0-9]{1,20})\s+alarm:\s*([A-Z]{1,32})\b`)

// alarmsIn are the alarms among the errors of a status. One without a member's id is nobody's.
func alarmsIn(errors []string) []upgrade.EtcdAlarmFacts {
	var out []upgrade.EtcdAlarmFacts
	for _, text := range errors {
		for _, m := range alarmText.FindAllStringSubmatch(text, -1) {
			if id, err := strconv.ParseUint(m[1], 10, 64); err == nil {
				out = append(out, upgrade.EtcdAlarmFacts{Member: idText(id), Alarm: m[2]})
			}
		}
	}
	return out
}
