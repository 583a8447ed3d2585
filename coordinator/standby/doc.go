// Package standby decides which machines of a pool stand by and which serve. It is pure:
// the same fleet gives the same roles.
//
// As many stand by as spec.replicas leaves over, or those whose own spec says so. While
// machines of the pool wait for a drain, or are in one, maxSurge fewer of them do: a
// standby that is up to date is put to work, a serving machine is drained and upgraded,
// and goes to work in the place of the next one. The last one stays empty, and stands by.
package standby
