//go:build !(linux || darwin || freebsd || netbsd || openbsd)

package process

import "context"

func run(context.Context, Spec, *window, *window) (Outcome, error) {
	return Outcome{}, ErrUnsupported
}

func talk(Spec) (*Talk, error) { return nil, ErrUnsupported }
