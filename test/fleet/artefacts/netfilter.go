package artefacts

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// iptablesNames are the names xtables-nft-multi answers to, as far as kube-proxy calls them.
var iptablesNames = []string{
	"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore",
}

// netfilterTools collects nft and the nft flavour of iptables with every library they load.
func netfilterTools(root string) (imageContent, error) {
	c := imageContent{files: map[string]string{}, links: map[string]string{}}
	plugins, err := filepath.Glob(filepath.Join(root, "usr/lib/*/xtables/*.so"))
	if err != nil || len(plugins) == 0 {
		return c, fmt.Errorf("finding iptables extensions under %s: %w", root, errors.Join(err, os.ErrNotExist))
	}
	wanted := []string{"/usr/sbin/nft", "/usr/sbin/xtables-nft-multi"}
	for _, plugin := range plugins {
		wanted = append(wanted, strings.TrimPrefix(plugin, root))
	}
	for _, path := range wanted {
		if err := addWithLibraries(c, root, path); err != nil {
			return c, err
		}
	}
	for _, name := range iptablesNames {
		c.links["/usr/sbin/"+name] = "xtables-nft-multi"
	}
	return c, nil
}

// addWithLibraries adds a program or library of the tree and, recursively, what the dynamic linker will look for.
func addWithLibraries(c imageContent, root, path string) error {
	if _, known := c.files[path]; known {
		return nil
	}
	source := filepath.Join(root, path)
	object, err := elf.Open(source)
	if err != nil {
		return fmt.Errorf("reading %s: %w", source, err)
	}
	defer func() { _ = object.Close() }()
	c.files[path] = source
	if interpreter := interpreterOf(object); interpreter != "" {
		c.files[interpreter] = filepath.Join(root, interpreter)
	}
	libraries, err := object.ImportedLibraries()
	if err != nil {
		return fmt.Errorf("reading what %s links to: %w", source, err)
	}
	for _, name := range libraries {
		found, err := filepath.Glob(filepath.Join(root, "usr/lib/*-linux-gnu*", name))
		if err != nil || len(found) != 1 {
			return fmt.Errorf("finding library %s of %s: %d found", name, path, len(found))
		}
		if err := addWithLibraries(c, root, "/lib"+strings.TrimPrefix(found[0], filepath.Join(root, "usr/lib"))); err != nil {
			return err
		}
	}
	return nil
}

func interpreterOf(object *elf.File) string {
	for _, program := range object.Progs {
		if program.Type != elf.PT_INTERP {
			continue
		}
		path := make([]byte, program.Filesz)
		if _, err := program.ReadAt(path, 0); err == nil {
			return strings.TrimRight(string(path), "\x00")
		}
	}
	return ""
}
