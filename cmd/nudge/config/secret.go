package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"unicode"
)

// longestSecret bounds, in bytes, what is read of a secret's file.
const longestSecret = 64 << 10

var (
	// variableName is what may stand in a key that ends in _env. Most tokens hold a dash or a dot, and so don't pass.
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)
	// tellable is a variable's name that can't well be a token, so that a message may hold it.
	tellable = regexp.MustCompile(`^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$`)
)

// isFile reports whether the value of a key that ends in _env names a file.
func isFile(ref string) bool { return strings.HasPrefix(ref, "/") || strings.HasPrefix(ref, "./") }

// Secret reads the secret that the value of a key ending in _env leads to: a file when the value begins with "/" or
// "./", otherwise an environment variable. White space around the secret is dropped. No secret, an empty one, and a
// file of more than 64 KiB are errors. Neither the secret nor anything that may be one is in the error.
func Secret(ref string) (string, error) {
	secret, err := "", error(nil)
	if isFile(ref) {
		secret, err = readSecret(ref)
	} else {
		secret, err = envSecret(ref)
	}
	if err != nil {
		return "", fmt.Errorf("read a secret: %w", err)
	}
	return secret, nil
}

// Secrets are all secrets that the config leads to, in no order, for those who keep them out of texts. One that cannot be
// read is left out.
func (c Config) Secrets() []string {
	var secrets []string
	for _, server := range c.MCP {
		for _, name := range server.Env {
			secrets = append(secrets, os.Getenv(name))
		}
	}
	for _, address := range addresses(reflect.ValueOf(c)) {
		secrets = append(secrets, keysIn(address)...)
	}
	for _, ref := range references(reflect.ValueOf(c)) {
		if secret, err := Secret(ref); err == nil {
			secrets = append(secrets, secret)
		}
	}
	return secrets
}

// references are the values of all keys that end in _env, wherever they stand.
func references(value reflect.Value) []string {
	return valuesOf(value, func(key string) bool { return strings.HasSuffix(key, "_env") })
}

// addresses are the values of all keys that end in url.
func addresses(value reflect.Value) []string {
	return valuesOf(value, func(key string) bool { return strings.HasSuffix(key, "url") })
}

// valuesOf are the values that are not empty of keys, wherever they stand.
func valuesOf(value reflect.Value, wanted func(key string) bool) (values []string) {
	switch value.Kind() {
	case reflect.Struct:
		for i := range value.NumField() {
			inner := value.Field(i)
			if inner.Kind() == reflect.String && inner.String() != "" && wanted(value.Type().Field(i).Tag.Get("toml")) {
				values = append(values, inner.String())
			}
			values = append(values, valuesOf(inner, wanted)...)
		}
	case reflect.Slice:
		for i := range value.Len() {
			values = append(values, valuesOf(value.Index(i), wanted)...)
		}
	}
	return values
}

// shortestKey is how long a part of an address is at least that can be a key.
const shortestKey = 16

// keysIn are the parts of an address that may be keys, as hosted servers have them in the path: long, with letters and digits.
func keysIn(address string) (keys []string) {
	parsed, err := url.Parse(address)
	if err != nil {
		return nil
	}
	parts := strings.Split(parsed.Path, "/")
	for _, values := range parsed.Query() {
		parts = append(parts, values...)
	}
	for _, part := range parts {
		isDigit, isLetter := func(r rune) bool { return '0' <= r && r <= '9' }, unicode.IsLetter
		if len(part) >= shortestKey && strings.ContainsFunc(part, isDigit) && strings.ContainsFunc(part, isLetter) {
			keys = append(keys, part)
		}
	}
	return keys
}

func envSecret(name string) (string, error) {
	label := "the environment variable named there"
	if tellable.MatchString(name) {
		label = "environment variable " + name
	}
	secret := strings.TrimSpace(os.Getenv(name))
	if secret == "" {
		return "", fmt.Errorf("%s is not set", label)
	}
	return secret, nil
}

func readSecret(path string) (string, error) {
	label := "the file named there"
	// A path whose folder exists is a path; something else with a slash in front may be a token.
	if folder := filepath.Dir(path); folder != "/" {
		if info, err := os.Stat(folder); err == nil && info.IsDir() {
			label = "file " + path
		}
	}
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", label, withoutPath(err))
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, longestSecret+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: %w", label, withoutPath(err))
	case len(content) > longestSecret:
		return "", fmt.Errorf("%s is longer than 64 KiB", label)
	}
	secret := strings.TrimSpace(string(content))
	if secret == "" {
		return "", fmt.Errorf("%s is empty", label)
	}
	return secret, nil
}

// withoutPath is what went wrong with a file, without its path.
func withoutPath(err error) error {
	var failed *fs.PathError
	if errors.As(err, &failed) {
		return failed.Err
	}
	return err
}
