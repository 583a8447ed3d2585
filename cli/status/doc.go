// Package status shows pools and machines to people: what runs, and what each waits for.
package status
