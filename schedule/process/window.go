package process

import (
	"fmt"
	"sync"
	"unicode/utf8"
)

// window keeps the start and the end of what is written to it, and counts the rest. It may be read while it is
// still being written.
type window struct {
	over  chan struct{} // closed when more came than is kept; nil if nobody asks; set before the first Write
	front int           // bytes of head at most
	back  int           // bytes of tail at most

	mu    sync.Mutex
	head  []byte
	tail  []byte // a ring once it is full; next is its oldest byte
	next  int
	total int64
}

// newWindow keeps so many bytes; DefaultLimit when limit is 0 or less.
func newWindow(limit int) *window {
	if limit <= 0 {
		limit = DefaultLimit
	}
	return &window{front: limit - limit/2, back: limit / 2}
}

// Write takes everything and never fails.
func (w *window) Write(data []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	written := len(data)
	fitted := w.fits()
	w.total += int64(written)
	if w.over != nil && fitted && !w.fits() {
		close(w.over)
	}
	taken := min(len(data), w.front-len(w.head))
	w.head = append(w.head, data[:taken]...)
	data = data[taken:]
	data = data[max(0, len(data)-w.back):]
	growing := min(len(data), w.back-len(w.tail))
	w.tail = append(w.tail, data[:growing]...)
	for data = data[growing:]; len(data) > 0; {
		copied := copy(w.tail[w.next:], data)
		data = data[copied:]
		w.next = (w.next + copied) % w.back
	}
	return written, nil
}

// fits tells, with mu held, whether all that came is kept.
func (w *window) fits() bool { return w.total <= int64(w.front+w.back) }

// contents gives what was kept and how many bytes are missing from it. Runes that the gap would tear are left out.
func (w *window) contents() (output []byte, leftOut int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	head := w.head
	tail := append(append([]byte{}, w.tail[w.next:]...), w.tail[:w.next]...)
	if w.fits() {
		return append(append([]byte{}, head...), tail...), 0
	}
	head, tail = head[:wholeRunes(head)], tail[tornRune(tail):]
	leftOut = w.total - int64(len(head)+len(tail))
	output = append([]byte{}, head...)
	output = fmt.Appendf(output, "\n[… %d bytes left out …]\n", leftOut)
	return append(output, tail...), leftOut
}

// wholeRunes is the length of data without the beginning of a rune at its end.
func wholeRunes(data []byte) int {
	for back := 1; back < utf8.UTFMax && back <= len(data); back++ {
		if at := len(data) - back; utf8.RuneStart(data[at]) {
			if utf8.FullRune(data[at:]) {
				break
			}
			return at
		}
	}
	return len(data)
}

// tornRune is the length of the end of a rune at the start of data.
func tornRune(data []byte) int {
	at := 0
	for at < len(data) && !utf8.RuneStart(data[at]) {
		at++
	}
	if at >= utf8.UTFMax { // no rune has that many, so this is no text
		return 0
	}
	return at
}
