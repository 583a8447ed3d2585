package credential

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// accountPrefix begins the name of a host's ServiceAccount.
const accountPrefix = "refit-machine-"

// Account is the name of a machine's ServiceAccount.
func Account(machine string) string { return accountPrefix + machine }

// Claims are what a token says of itself. Nobody here verifies them: the API server does.
type Claims struct {
	Namespace, Account string
	IssuedAt, Expires  time.Time
}

// Machine is the host that the token is for; "" for none.
func (c Claims) Machine() string {
	name, ok := strings.CutPrefix(c.Account, accountPrefix)
	if !ok {
		return ""
	}
	return name
}

// errNoToken says that a text is not the token of a ServiceAccount. It never has the text in it.
var errNoToken = errors.New("it is no token of a ServiceAccount")

// Parse reads what a token says of itself.
func Parse(token string) (Claims, error) {
	parts := strings.Split(strings.TrimSpace(token), ".")
	if len(parts) != 3 {
		return Claims{}, errNoToken
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return Claims{}, errNoToken
	}
	var said struct {
		Subject   string  `json:"sub"`
		IssuedAt  float64 `json:"iat"`
		ExpiresAt float64 `json:"exp"`
	}
	if err := json.Unmarshal(payload, &said); err != nil {
		return Claims{}, errNoToken
	}
	subject := strings.Split(said.Subject, ":")
	if len(subject) != 4 || subject[0] != "system" || subject[1] != "serviceaccount" || subject[2] == "" || subject[3] == "" {
		return Claims{}, fmt.Errorf("%w: it speaks for %q", errNoToken, said.Subject)
	}
	const latest = 1 << 40 // seconds; beyond it times run over
	if said.ExpiresAt <= 0 || said.ExpiresAt > latest || said.IssuedAt < 0 || said.IssuedAt > said.ExpiresAt {
		return Claims{}, fmt.Errorf("%w: it does not say from when until when it counts", errNoToken)
	}
	return Claims{
		Namespace: subject[2], Account: subject[3],
		IssuedAt: time.Unix(int64(said.IssuedAt), 0), Expires: time.Unix(int64(said.ExpiresAt), 0),
	}, nil
}

// renewAt is when to ask for the next token: around two thirds of its life, so that a fleet
// whose tokens were made at once does not come at once. at is between 0 and 1.
func (c Claims) renewAt(at float64) time.Time {
	life := c.Expires.Sub(c.IssuedAt)
	return c.IssuedAt.Add(time.Duration(float64(life) * (0.6 + 0.13*at)))
}

func (c Claims) nextRenewal() time.Time { return c.renewAt(rand.Float64()) }
