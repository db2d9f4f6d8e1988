//go:build !((linux && (386 || amd64 || arm || arm64 || loong64 || ppc64le || riscv64 || s390x)) || (darwin && (amd64 || arm64)) || (freebsd && (amd64 || arm64)))

package script

import "time"

func interpret(task, time.Duration) answer {
	return answer{Error: "scripts cannot be run on this system"}
}
