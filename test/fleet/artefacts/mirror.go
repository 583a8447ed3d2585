package artefacts

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// mirror is a copy of the Kubernetes release site: every file has a neighbour with its SHA-256.
type mirror struct{ base string }

// unavailable is a mirror that cannot be reached or has no such file.
type unavailable struct{ cause error }

func (u *unavailable) Error() string { return u.cause.Error() }
func (u *unavailable) Unwrap() error { return u.cause }

func isUnavailable(err error) bool {
	var u *unavailable
	return errors.As(err, &u)
}

func (m mirror) fetchRelease(ctx context.Context, w workplace, version string) error {
	bin := filepath.Join(w.dir, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return fmt.Errorf("creating %s: %w", bin, err)
	}
	for i, name := range kubernetesCommands {
		w.note(fmt.Sprintf("downloading %s (%d of %d)", name, i+1, len(kubernetesCommands)))
		url := strings.Join([]string{strings.TrimRight(m.base, "/"), "release", version, "bin/linux", runtime.GOARCH, name}, "/")
		if err := m.fetchBinary(ctx, url, filepath.Join(bin, name)); err != nil {
			return err
		}
	}
	return nil
}

func (m mirror) fetchBinary(ctx context.Context, url, path string) error {
	var sum bytes.Buffer
	if err := get(ctx, url+".sha256", &sum); err != nil {
		return err
	}
	want, _, _ := strings.Cut(strings.TrimSpace(sum.String()), " ")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return fmt.Errorf("creating %s: %w", path, err)
	}
	hash := sha256.New()
	if err := errors.Join(get(ctx, url, io.MultiWriter(file, hash)), file.Close()); err != nil {
		return err
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != want {
		return fmt.Errorf("checking %s: its SHA-256 is %s, the mirror's own checksum file says %s: repair the mirror, or run without it", url, got, want)
	}
	return nil
}

func get(ctx context.Context, url string, to io.Writer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("asking for %s: %w", url, err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return &unavailable{fmt.Errorf("downloading: %w", err)}
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return &unavailable{fmt.Errorf("downloading %s: the mirror answers %s", url, resp.Status)}
	}
	if _, err := io.Copy(to, resp.Body); err != nil {
		return &unavailable{fmt.Errorf("downloading %s: %w", url, err)}
	}
	return nil
}
