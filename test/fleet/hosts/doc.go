// Package hosts makes machines out of systemd-nspawn: each host boots the real systemd on a disk of its own, in network,
// pid, mount, ipc, uts and cgroup namespaces of its own.
//
//	Site     the footprint of one fleet on the machine: index, state directory, names, addresses
//	network  one switch (a bridge in a namespace of its own), one network namespace per host
//	disk     an overlay per host above shared read-only layers; what a killed host wrote stays
//	cgroup   one control group per host and hierarchy: what is in it is the host, to the last process
//	monitor  boots the host and boots it again when it asks for a reboot
//	exec     runs a command inside
//
// What makes up a host on this machine is derived from the fleet's index and the host's name, never from a record of what
// was started: after any crash the same derivation finds what is left.
package hosts
