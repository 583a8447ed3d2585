package artefacts

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// dnsPlugins are those the configuration of kubeadm uses. Leaving out the rest leaves out the clients of three clouds.
var dnsPlugins = []string{
	"cache", "errors", "forward", "health", "kubernetes", "log", "loadbalance", "loop", "metrics", "ready", "reload",
}

const coreDNSModule = "github.com/coredns/coredns"

func dnsImage(tag string) imageBuild {
	source := dnsProgram()
	return imageBuild{name: "coredns", tag: tag, inputs: []string{source}, eta: compiling(2 * time.Minute),
		content: func(ctx context.Context, w workplace) (imageContent, error) {
			b := goBuild{
				module: coreDNSModule, version: "v" + strings.TrimPrefix(tag, "v"), commands: map[string]string{"coredns": "."},
				sources: map[string]string{"main.go": source},
				ldflags: []string{"-s", "-w", "-X", coreDNSModule + "/coremain.GitCommit=refit-fleet"},
			}
			if err := b.run(ctx, w); err != nil {
				return imageContent{}, err
			}
			binary := filepath.Join(w.dir, "bin", "coredns")
			err := checkSays(ctx, []string{binary, "-version"}, "CoreDNS-"+strings.TrimPrefix(tag, "v"))
			return imageContent{files: map[string]string{"/coredns": binary}, entrypoint: []string{"/coredns"}}, err
		}}
}

// dnsProgram is CoreDNS with its own main replaced by one that registers fewer plugins.
func dnsProgram() string {
	var text strings.Builder
	fmt.Fprintf(&text, "package main\n\nimport (\n\t%q\n", coreDNSModule+"/coremain")
	for _, plugin := range dnsPlugins {
		fmt.Fprintf(&text, "\t_ %q\n", coreDNSModule+"/plugin/"+plugin)
	}
	text.WriteString(")\n\nfunc main() { coremain.Run() }\n")
	return text.String()
}
