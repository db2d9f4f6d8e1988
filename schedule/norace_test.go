//go:build !race

package schedule

const raced = false
