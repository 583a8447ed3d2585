package browser

import (
	"context"
	"encoding/json"
)

// Spoken is what a screen reader is given of one element.
type Spoken struct {
	Role, Name, Description string
	// Properties such as focused, selected and live; true is "true".
	Properties map[string]string
}

// Accessible is the page as the browser gives it to a screen reader, in its order, without what it leaves out.
func (p *Page) Accessible(ctx context.Context) ([]Spoken, error) {
	type value struct {
		Value any `json:"value"`
	}
	var tree struct {
		Nodes []struct {
			Ignored                 bool  `json:"ignored"`
			Role, Name, Description value `json:",omitempty"`
			Properties              []struct {
				Name  string `json:"name"`
				Value value  `json:"value"`
			} `json:"properties"`
		} `json:"nodes"`
	}
	if err := p.Call(ctx, "Accessibility.getFullAXTree", nil, &tree); err != nil {
		return nil, err
	}
	var out []Spoken
	for _, n := range tree.Nodes {
		if n.Ignored {
			continue
		}
		s := Spoken{Role: text(n.Role.Value), Name: text(n.Name.Value), Description: text(n.Description.Value), Properties: map[string]string{}}
		for _, property := range n.Properties {
			s.Properties[property.Name] = text(property.Value.Value)
		}
		out = append(out, s)
	}
	return out, nil
}

func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	words, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(words)
}
