// Package verbs is what operators do to pools and machines, one file for each verb. A verb
// reads a namespace and says which objects it would change and what there is to know about
// it; whoever calls it writes, or shows, that.
package verbs
