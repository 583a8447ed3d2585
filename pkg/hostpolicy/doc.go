// Package hostpolicy is what the owner of a host lets a Machine ask of it: the file
// /etc/refit/policy.yaml, read strictly, and what it says of one source, package, hook,
// step or setting. It is pure; who reads the file is agent/host/policy, and what is
// asked for is gathered in pkg/upgrade.
//
// Without a file only the sources that the host has may be named, and what is always
// refused stays so. With one, what it does not speak of is as without it.
package hostpolicy
