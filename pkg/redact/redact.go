// Package redact keeps credentials out of what is shown, logged and reported. The sources
// of a host may carry a user and a password in their URIs: what fetches needs them, and
// nobody who reads does.
package redact

import "regexp"

// userinfo of a URI, up to the last @ before its path. JSON writes & as \u0026.
var userinfo = regexp.MustCompile(`\b([A-Za-z][A-Za-z0-9+.-]*://)(?:[^\s/?#"\\]|\\u[0-9a-fA-F]{4})+@`)

// URIs is a text without the users and passwords of the URIs in it.
func URIs(text string) string { return userinfo.ReplaceAllString(text, "${1}REDACTED@") }

// Has says whether a text has something to take out.
func Has(text []byte) bool { return userinfo.Match(text) }

// Bytes is URIs for what is encoded already.
func Bytes(text []byte) []byte { return userinfo.ReplaceAll(text, []byte("${1}REDACTED@")) }
