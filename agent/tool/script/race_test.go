//go:build race

package script

// raceDetector takes more memory than a script may.
const raceDetector = true
