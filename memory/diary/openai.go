package diary

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// OpenAIConfig says where vectors are asked for. BaseURL and Name must be set.
type OpenAIConfig struct {
	BaseURL string // "/embeddings" is put behind it, as in https://api.openai.com/v1
	Name    string // of the model
	Key     string // "" sends none
	HTTP    *http.Client
}

const (
	openaiBatch   = 64               // texts in one request
	openaiTime    = 30 * time.Second // for one answer
	openaiMost    = 64 << 20         // bytes of one
	longComplaint = 300              // bytes of what a server says against a request
	// openaiNothing is the cosine that texts with nothing in common have with the usual models.
	openaiNothing = 0.2
)

// OpenAI asks a server for vectors, as OpenAI's API describes it: https://platform.openai.com/docs/api-reference/embeddings.
func OpenAI(c OpenAIConfig) (Embedder, error) {
	base, err := url.Parse(c.BaseURL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, errors.New("the embedder's base_url is not an address such as http://127.0.0.1:11434/v1")
	}
	if c.Name == "" {
		return nil, errors.New("the embedder's model has no name")
	}
	if c.HTTP == nil {
		c.HTTP = &http.Client{}
	}
	c.BaseURL = strings.TrimRight(c.BaseURL, "/")
	return openai{c}, nil
}

type openai struct{ OpenAIConfig }

func (o openai) Model() string { return "openai/" + o.Name }

func (o openai) Score(cosine float64) float64 {
	return max(cosine-openaiNothing, 0) / (1 - openaiNothing)
}

func (o openai) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, 0, len(texts))
	for len(texts) > 0 {
		some := texts[:min(openaiBatch, len(texts))]
		texts = texts[len(some):]
		got, err := o.ask(ctx, some)
		if err != nil {
			return nil, fmt.Errorf("ask for embeddings: %w", err)
		}
		vectors = append(vectors, got...)
	}
	return vectors, nil
}

// ask makes one request.
func (o openai) ask(ctx context.Context, texts []string) ([][]float32, error) {
	ctx, cancel := context.WithTimeout(ctx, openaiTime)
	defer cancel()
	body, err := json.Marshal(map[string]any{"model": o.Name, "input": texts, "encoding_format": "float"})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, o.BaseURL+"/embeddings", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if o.Key != "" {
		request.Header.Set("Authorization", "Bearer "+o.Key)
	}
	response, err := o.HTTP.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, openaiMost))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the answer: %w", err)
	case response.StatusCode == http.StatusBadRequest, response.StatusCode == http.StatusRequestEntityTooLarge:
		return nil, fmt.Errorf("%w, or the request is wrong: %s", ErrTooLong, complaint(answer))
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the server answers with status %d: %s", response.StatusCode, complaint(answer))
	}
	return readVectors(answer, len(texts))
}

// readVectors takes an answer apart. Which vector is whose tells its index, not its place.
func readVectors(answer []byte, texts int) ([][]float32, error) {
	var read struct {
		Data []struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	if err := json.Unmarshal(answer, &read); err != nil {
		return nil, fmt.Errorf("%w: the answer is no such JSON: %w", errNoVector, err)
	}
	if len(read.Data) != texts {
		return nil, fmt.Errorf("%w: %d for %d texts", errNoVector, len(read.Data), texts)
	}
	vectors := make([][]float32, texts)
	for _, one := range read.Data {
		if one.Index < 0 || one.Index >= texts || vectors[one.Index] != nil {
			return nil, fmt.Errorf("%w: one is for text %d of %d, or there are two for it", errNoVector, one.Index+1, texts)
		}
		vectors[one.Index] = one.Embedding
	}
	return vectors, nil
}

// complaint is what a server says against a request, in one line.
func complaint(answer []byte) string {
	var read struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(answer, &read) == nil && read.Error.Message != "" {
		answer = []byte(read.Error.Message)
	}
	if strings.HasPrefix(strings.TrimSpace(string(answer)), "<") {
		return "a page instead of an answer" // of a proxy, or of another server
	}
	return cut(strings.Join(strings.Fields(strings.ToValidUTF8(string(answer), " ")), " "), longComplaint)
}
