// Command image writes a static program as a container image into an archive, without a container engine.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/refit-dev/refit/test/image"
)

func main() {
	program := flag.String("program", "", "the static program, which becomes the entry point")
	tag := flag.String("tag", "", "the image's name and tag")
	arch := flag.String("arch", "", "the architecture that the program was built for")
	out := flag.String("out", "", "the archive to write")
	flag.Parse()
	if err := run(*program, *tag, *arch, *out); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
	fmt.Printf("%s: %s for linux/%s\n", *out, *tag, *arch)
}

func run(program, tag, arch, out string) error {
	img, err := image.FromBinaryFor(program, "/"+filepath.Base(program), arch)
	if err != nil {
		return fmt.Errorf("making the image: %w", err)
	}
	if err := image.WriteArchive(img, tag, out); err != nil {
		return fmt.Errorf("keeping the image: %w", err)
	}
	return nil
}
