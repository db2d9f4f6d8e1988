//go:build race

package schedule

// raced says that the race detector is on, with which a year takes half a minute.
const raced = true
