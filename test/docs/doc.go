// Package docs reads the documentation, so that tests can hold it to what the programs do:
// every command that it shows is one that they take, every object one that the API server
// takes, and every link leads somewhere.
package docs
