// Package browser drives a real Chromium without a window, over the DevTools protocol on two pipes: no port is opened and
// no library is needed for the handful of calls that tests and screenshots make.
package browser
