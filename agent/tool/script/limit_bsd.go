//go:build darwin || freebsd

package script

func noNewRights() error { return nil }
