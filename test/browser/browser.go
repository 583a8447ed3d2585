package browser

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"
)

// Names under which distributions install it.
var names = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// Find is where Chromium is installed; an error where it is not.
func Find() (string, error) {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no browser is installed (looked for %v): apt-get install chromium", names)
}

// Page is one tab of a browser of its own.
type Page struct {
	cmd     *exec.Cmd
	write   *os.File
	profile string
	session string

	mu      sync.Mutex
	last    int
	waiting map[int]chan answer
}

type answer struct {
	ID     int             `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// Options of a page.
type Options struct {
	Width, Height int
	Dark          bool
}

// Open starts a browser with an empty tab.
func Open(ctx context.Context, o Options) (*Page, error) {
	path, err := Find()
	if err != nil {
		return nil, err
	}
	profile, err := os.MkdirTemp("", "refit-browser-")
	if err != nil {
		return nil, err
	}
	p := &Page{profile: profile, waiting: map[int]chan answer{}}
	if err := p.start(ctx, path); err != nil {
		p.Close()
		return nil, err
	}
	if err := p.attach(ctx, o); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (p *Page) start(ctx context.Context, path string) error {
	theirs, write, err := os.Pipe()
	if err != nil {
		return err
	}
	read, theirsOut, err := os.Pipe()
	if err != nil {
		return err
	}
	p.write = write
	p.cmd = exec.CommandContext(ctx, path, "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", // the sandbox refuses to run as root
		"--disable-dev-shm-usage", "--no-first-run", "--disable-extensions", "--disable-background-networking", "--hide-scrollbars", "--user-data-dir="+p.profile, "about:blank")
	p.cmd.ExtraFiles = []*os.File{theirs, theirsOut} // descriptors 3 and 4
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", path, err)
	}
	theirs.Close()
	theirsOut.Close()
	go p.listen(read)
	return nil
}

// listen hands answers to who waits for them; events are not asked for.
func (p *Page) listen(read *os.File) {
	defer read.Close()
	in := bufio.NewReader(read)
	for {
		text, err := in.ReadBytes(0)
		if err != nil {
			break
		}
		var a answer
		if json.Unmarshal(text[:len(text)-1], &a) == nil && a.ID != 0 {
			p.mu.Lock()
			to := p.waiting[a.ID]
			delete(p.waiting, a.ID)
			p.mu.Unlock()
			if to != nil {
				to <- a
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, to := range p.waiting {
		close(to)
	}
	p.waiting = nil
}

// Call is one call of the DevTools protocol.
func (p *Page) Call(ctx context.Context, method string, params, result any) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	to := make(chan answer, 1)
	p.mu.Lock()
	if p.waiting == nil {
		p.mu.Unlock()
		return errors.New("the browser has ended")
	}
	p.last++
	id := p.last
	p.waiting[id] = to
	text, err := json.Marshal(struct {
		ID      int    `json:"id"`
		Method  string `json:"method"`
		Params  any    `json:"params,omitempty"`
		Session string `json:"sessionId,omitempty"`
	}{id, method, params, p.session})
	if err == nil {
		_, err = p.write.Write(append(text, 0))
	}
	p.mu.Unlock()
	if err != nil {
		return fmt.Errorf("calling %s: %w", method, err)
	}
	select {
	case <-ctx.Done():
		return fmt.Errorf("calling %s: %w", method, ctx.Err())
	case a, open := <-to:
		switch {
		case !open:
			return fmt.Errorf("calling %s: the browser has ended", method)
		case a.Error != nil:
			return fmt.Errorf("calling %s: %s", method, a.Error.Message)
		case result == nil:
			return nil
		}
		return json.Unmarshal(a.Result, result)
	}
}

type object map[string]any

func (p *Page) attach(ctx context.Context, o Options) error {
	var target struct {
		TargetID string `json:"targetId"`
	}
	if err := p.Call(ctx, "Target.createTarget", object{"url": "about:blank"}, &target); err != nil {
		return err
	}
	var session struct {
		SessionID string `json:"sessionId"`
	}
	if err := p.Call(ctx, "Target.attachToTarget", object{"targetId": target.TargetID, "flatten": true}, &session); err != nil {
		return err
	}
	p.session = session.SessionID
	if o.Width > 0 {
		if err := p.Call(ctx, "Emulation.setDeviceMetricsOverride", object{"width": o.Width, "height": o.Height, "deviceScaleFactor": 1, "mobile": false}, nil); err != nil {
			return err
		}
	}
	scheme := "light"
	if o.Dark {
		scheme = "dark"
	}
	return p.Call(ctx, "Emulation.setEmulatedMedia", object{"features": []object{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// Go opens an address.
func (p *Page) Go(ctx context.Context, url string) error {
	var result struct {
		ErrorText string `json:"errorText"`
	}
	if err := p.Call(ctx, "Page.navigate", object{"url": url}, &result); err != nil {
		return err
	}
	if result.ErrorText != "" {
		return fmt.Errorf("opening %s: %s", url, result.ErrorText)
	}
	return nil
}

// Eval is what an expression gives, promises waited for.
func (p *Page) Eval(ctx context.Context, expression string, into any) error {
	var result struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception *struct {
			Text      string `json:"text"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	if err := p.Call(ctx, "Runtime.evaluate", object{"expression": expression, "returnByValue": true, "awaitPromise": true}, &result); err != nil {
		return err
	}
	if e := result.Exception; e != nil {
		return fmt.Errorf("evaluating %s: %s %s", expression, e.Text, e.Exception.Description)
	}
	if into == nil || result.Result.Value == nil {
		return nil
	}
	return json.Unmarshal(result.Result.Value, into)
}

// codes of keys that have no text.
var codes = map[string]int{"Enter": 13, "Escape": 27, "Tab": 9, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}

// Press presses keys as a person would, one after another: names as in KeyboardEvent.key, or single characters.
func (p *Page) Press(ctx context.Context, keys ...string) error {
	for _, key := range keys {
		down := object{"type": "keyDown", "key": key}
		if code, named := codes[key]; named {
			down["windowsVirtualKeyCode"], down["code"] = code, key
			if key == "Enter" {
				down["text"] = "\r"
			}
		} else {
			down["text"] = key
		}
		if err := p.Call(ctx, "Input.dispatchKeyEvent", down, nil); err != nil {
			return err
		}
		if err := p.Call(ctx, "Input.dispatchKeyEvent", object{"type": "keyUp", "key": key}, nil); err != nil {
			return err
		}
	}
	return nil
}

// Screenshot is the window as a PNG.
func (p *Page) Screenshot(ctx context.Context) ([]byte, error) {
	var result struct {
		Data string `json:"data"`
	}
	if err := p.Call(ctx, "Page.captureScreenshot", object{"format": "png", "optimizeForSpeed": false}, &result); err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(result.Data)
}

// Close ends the browser and removes its profile.
func (p *Page) Close() {
	if p.cmd != nil && p.cmd.Process != nil {
		p.session = ""
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		_ = p.Call(ctx, "Browser.close", nil, nil)
		cancel()
		p.write.Close()
		stuck := time.AfterFunc(10*time.Second, func() { _ = p.cmd.Process.Kill() })
		_ = p.cmd.Wait()
		stuck.Stop()
	}
	_ = os.RemoveAll(p.profile)
}
