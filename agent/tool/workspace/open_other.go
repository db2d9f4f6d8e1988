//go:build !unix

package workspace

// openWithoutWaiting is not needed where folders hold no named pipes.
const openWithoutWaiting = 0
