// Command program stands in tests for a built one: small, and with the build information that an SBOM is made of.
package main

import "github.com/Masterminds/semver/v3"

func main() { println(semver.MustParse("1.2.3").Major()) }
