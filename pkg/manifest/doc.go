// Package manifest reads files of Refit's objects as strictly as the API server takes
// them: the schemas and the rules of the CRDs, unknown fields and duplicate keys
// refused. Everything that is wrong is said with file, line and field.
//
//	text ──> documents ──> objects (items of lists) ──> schema, rules ──> Object, or Errors
//
// Objects are judged by crd, with the API server's own code, or by rules, which is small
// and knows Machines only.
package manifest
