// Command screenshots makes the pictures of the documentation: the dashboard's own page, from its own handler, in a real
// Chromium, of fleets of several sizes that are made up. It prints what the browser and this process measured meanwhile.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/cli/dashboard"
	"github.com/refit-dev/refit/test/browser"
	"github.com/refit-dev/refit/test/showcase"
)

// shot is one picture.
type shot struct {
	file     string
	machines int
	hash     string
	dark     bool
}

var shots = []shot{
	{"dashboard-3.png", 3, "machine=worker-2", false},
	{"dashboard-50.png", 50, "machine=worker-35", false},
	{"dashboard-50-dark.png", 50, "colour=version", true},
	{"dashboard-50-timeline.png", 50, "view=timeline", false},
	{"dashboard-5000.png", 5000, "machine=worker-3500", false},
}

func main() {
	out := flag.String("out", "docs/images", "directory of the pictures")
	only := flag.String("only", "", "make only those whose file has this in its name")
	flag.Parse()
	for _, s := range shots {
		if !strings.Contains(s.file, *only) {
			continue
		}
		if err := s.take(context.Background(), *out); err != nil {
			fmt.Fprintf(os.Stderr, "error: %s: %s\n", s.file, err)
			os.Exit(1)
		}
	}
}

func (s shot) take(ctx context.Context, dir string) error {
	url, stop, err := serve(showcase.New(s.machines, time.Now()))
	if err != nil {
		return err
	}
	defer stop()
	page, err := browser.Open(ctx, browser.Options{Width: 1360, Height: 850, Dark: s.dark})
	if err != nil {
		return err
	}
	defer page.Close()
	if err := page.Go(ctx, url+"#"+s.hash); err != nil {
		return err
	}
	if err := until(ctx, page, `document.documentElement.dataset.ready && document.getElementById("shown").textContent.startsWith("`+fmt.Sprint(s.machines)+`")`); err != nil {
		return err
	}
	if strings.HasPrefix(s.hash, "machine=") {
		if err := until(ctx, page, `document.querySelector("#detail h3")`); err != nil {
			return err
		}
	}
	var told string
	if err := page.Eval(ctx, measured, &told); err != nil {
		return err
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	picture, err := page.Screenshot(ctx)
	if err != nil {
		return err
	}
	small, err := fewerColours(picture)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d machines, %s; %d KiB of Go heap here, fleet included; picture of %d KiB\n", s.file, s.machines, told, m.HeapAlloc>>10, len(small)>>10)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, s.file), small, 0o644)
}

// measured is what the browser says of itself, after a frame in which the last machines were drawn.
const measured = `new Promise(done => requestAnimationFrame(() => setTimeout(() => {
  const first = performance.getEntriesByName("first-contentful-paint")[0];
  const size = performance.getEntriesByType("resource").reduce((sum, e) => sum + e.transferSize, 0);
  done("first paint after " + Math.round(first ? first.startTime : NaN) + " ms, all machines after " + document.documentElement.dataset.ready + " ms, " +
    Math.round(performance.memory.usedJSHeapSize / 1024) + " KiB of JavaScript heap, " + document.getElementsByTagName("*").length + " elements");
}, 200)))`

func until(ctx context.Context, page *browser.Page, condition string) error {
	deadline := time.Now().Add(time.Minute)
	for {
		var is bool
		err := page.Eval(ctx, "Boolean("+condition+")", &is) // it fails while the page is only coming
		if err == nil && is {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.Join(fmt.Errorf("the page did not come to this: %s", condition), err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func serve(f *showcase.Fleet) (url string, stop func(), err error) {
	scheme := apiruntime.NewScheme()
	for _, add := range []func(*apiruntime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return "", nil, err
		}
	}
	hub := dashboard.NewHub(showcase.Namespace, corev1.LabelTopologyZone)
	for _, o := range f.Objects() {
		hub.Put(o)
	}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(f.Objects()...).Build()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	host, token := listener.Addr().String(), dashboard.NewToken()
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: dashboard.Handler(dashboard.Config{
		Hub: hub, Token: token, Hosts: []string{host}, Why: dashboard.Why(reader, reader, showcase.Namespace),
	})}
	go func() { _ = server.Serve(listener) }()
	return "http://" + host + "/" + token + "/", func() { _ = server.Close() }, nil
}

// fewerColours writes a picture with the 256 colours that are most in it: a page has few.
func fewerColours(text []byte) ([]byte, error) {
	full, err := png.Decode(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	counts := map[color.RGBA]int{}
	area := full.Bounds()
	at := func(x, y int) color.RGBA {
		r, g, b, _ := full.At(x, y).RGBA()
		return color.RGBA{uint8(r>>8) & 0xfc, uint8(g>>8) & 0xfc, uint8(b>>8) & 0xfc, 255}
	}
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			counts[at(x, y)]++
		}
	}
	var colours []color.RGBA
	for c := range counts {
		colours = append(colours, c)
	}
	slices.SortFunc(colours, func(a, b color.RGBA) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return (int(a.R)<<16 | int(a.G)<<8 | int(a.B)) - (int(b.R)<<16 | int(b.G)<<8 | int(b.B))
	})
	var palette color.Palette
	for _, c := range colours[:min(256, len(colours))] {
		palette = append(palette, c)
	}
	index := map[color.RGBA]uint8{}
	for c := range counts {
		index[c] = uint8(palette.Index(c))
	}
	less := image.NewPaletted(area, palette)
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			less.SetColorIndex(x, y, index[at(x, y)])
		}
	}
	var out bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, less)
	return out.Bytes(), err
}
