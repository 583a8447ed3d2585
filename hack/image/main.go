// Command image writes static programs as a container image into an archive, without a container engine.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/refit-dev/refit/test/image"
)

func main() {
	programs := flag.String("program", "", "the static programs, separated by commas; the first becomes the entry point")
	user := flag.String("user", image.Nobody, "the user that runs it")
	tag := flag.String("tag", "", "the image's name and tag")
	arch := flag.String("arch", "", "the architecture that the programs were built for")
	out := flag.String("out", "", "the archive to write")
	flag.Parse()
	if err := run(*programs, *user, *tag, *arch, *out); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
	fmt.Printf("%s: %s for linux/%s\n", *out, *tag, *arch)
}

func run(programs, user, tag, arch, out string) error {
	var files []image.File
	for program := range strings.SplitSeq(programs, ",") {
		files = append(files, image.File{Source: program, Path: "/" + filepath.Base(program)})
	}
	img, err := image.FromFiles(arch, user, files...)
	if err != nil {
		return fmt.Errorf("making the image: %w", err)
	}
	if err := image.WriteArchive(img, tag, out); err != nil {
		return fmt.Errorf("keeping the image: %w", err)
	}
	return nil
}
