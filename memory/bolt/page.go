package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
)

const (
	branchFlag   = 0x01
	leafFlag     = 0x02
	bucketFlag   = 0x01 // of a row that holds a bucket
	elementSize  = 16   // branch: pos 4, key 4, page 8; leaf: flags 4, pos 4, key 4, value 4
	bucketHeader = 16   // root 8, sequence 8; then the only page, if the root is 0

	// deepest is more levels than a tree of any size has: pages hold two rows and more.
	deepest = 64
	// longestPage is more than what the largest row takes up.
	longestPage = 1 << 30
)

// pageWalk looks at every page of one state of a file. It reads the file rather than the mapping that bbolt uses, and
// takes nothing in it for granted: whatever is damaged is reported and never followed in circles.
type pageWalk struct {
	ctx      context.Context
	file     io.ReaderAt
	meta     meta
	report   func(problem string)
	progress func(done, total int64)

	used, free bitmap
	done, all  uint64 // pages read, and to be read
	bad        int    // problems reported, which keep the rows from being read
	lost       int    // pages that are neither in use nor free; known when nothing is bad
}

// errTooDeep ends the walk of a branch.
var errTooDeep = errors.New("its pages lie one below the other without end")

// walk looks at the trees from the root on, then accounts for all pages. The error is that of reading the file, or of ctx.
func (w *pageWalk) walk() error {
	w.used, w.free = newBitmap(w.meta.pages), newBitmap(w.meta.pages)
	w.used.set(0)
	w.used.set(1)
	if err := readFreelist(w.file, w.meta, w.free.set, w.used.set); err != nil {
		w.problem("%v", err)
		return nil
	}
	w.all = w.meta.pages - w.free.count() - w.used.count()
	if err := w.tree(w.meta.root, "the root", span{}, 0); err != nil {
		return err
	}
	w.account()
	return nil
}

// account compares the pages in use with those that are free: each must be one of both.
func (w *pageWalk) account() {
	both := 0
	for i := range w.used {
		here := ^uint64(0)
		if rest := w.meta.pages - uint64(i)*64; rest < 64 {
			here = 1<<rest - 1
		}
		w.lost += bits.OnesCount64(^(w.used[i] | w.free[i]) & here)
		both += bits.OnesCount64(w.used[i] & w.free[i])
	}
	if both > 0 {
		w.problem("%d pages are in use and free at once, and would be written over", both)
	}
}

// span is what keys a subtree may have: from low on, below high. nil is no bound.
type span struct{ low, high []byte }

// tree looks at a page of a bucket and all below it.
func (w *pageWalk) tree(id uint64, where string, keys span, depth int) error {
	if depth > deepest {
		w.problem("%s, page %d: %v", where, id, errTooDeep)
		return nil
	}
	page, err := w.read(id, where)
	if err != nil || page == nil {
		return err
	}
	here := fmt.Sprintf("%s, page %d", where, id)
	if keys.low != nil && cutHeader(page).count == 0 { // only a whole bucket can be empty
		w.problem("%s has lost its rows", here)
		return nil
	}
	return w.page(page, here, where, keys, depth)
}

// read claims a page and returns it whole, nil when it was found to be none.
func (w *pageWalk) read(id uint64, where string) ([]byte, error) {
	if err := w.ctx.Err(); err != nil {
		return nil, err
	}
	if id < 2 || id >= w.meta.pages {
		w.problem("%s points to page %d of %d", where, id, w.meta.pages)
		return nil, nil
	}
	var head [pageHeaderSize]byte
	if _, err := w.file.ReadAt(head[:], int64(id)*w.meta.pageSize); err != nil {
		return nil, fmt.Errorf("read page %d: %w", id, err)
	}
	h := cutHeader(head[:])
	length := (h.over + 1) * uint64(w.meta.pageSize)
	if h.id != id || h.over >= w.meta.pages-id || length > longestPage {
		w.problem("%s: page %d is overwritten", where, id)
		return nil, nil
	}
	for i := id; i <= id+h.over; i++ {
		if w.used.has(i) {
			w.problem("%s: page %d is in use twice", where, i)
			return nil, nil
		}
		w.used.set(i)
	}
	w.done += h.over + 1
	if w.progress != nil {
		w.progress(int64(min(w.done, w.all)), int64(w.all)) // pages that are free as well are no part of all
	}
	page := make([]byte, length)
	if _, err := w.file.ReadAt(page, int64(id)*w.meta.pageSize); err != nil {
		return nil, fmt.Errorf("read page %d: %w", id, err)
	}
	return page, nil
}

// page looks at the rows of a page and at what lies below them.
func (w *pageWalk) page(page []byte, here, where string, keys span, depth int) error {
	h := cutHeader(page)
	if h.flags != branchFlag && h.flags != leafFlag || h.flags == branchFlag && h.count == 0 {
		w.problem("%s is overwritten", here)
		return nil
	}
	rows := make([]row, h.count)
	for i := range rows {
		r, ok := cutRow(page, h.flags, i)
		if !ok {
			w.problem("%s: row %d lies outside the page", here, i+1)
			return nil
		}
		if i > 0 && bytes.Compare(rows[i-1].key, r.key) >= 0 || i == 0 && bytes.Compare(r.key, keys.low) < 0 ||
			keys.high != nil && bytes.Compare(r.key, keys.high) >= 0 {
			w.problem("%s: row %d is out of order", here, i+1)
			return nil
		}
		rows[i] = r
	}
	for i, r := range rows {
		var err error
		switch {
		case h.flags == branchFlag:
			below := span{r.key, keys.high}
			if i+1 < len(rows) {
				below.high = rows[i+1].key
			}
			err = w.tree(r.child, where, below, depth+1)
		case r.bucket:
			err = w.bucket(r, fmt.Sprintf("%s/%q", where, r.key), depth)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bucket looks at the bucket in a row: in pages of its own, or whole in the row.
func (w *pageWalk) bucket(r row, where string, depth int) error {
	if len(r.value) < bucketHeader {
		w.problem("%s is a bucket cut off", where)
		return nil
	}
	if root := binary.NativeEndian.Uint64(r.value); root != 0 {
		return w.tree(root, where, span{}, depth+1)
	}
	page := r.value[bucketHeader:]
	if len(page) < pageHeaderSize || cutHeader(page).flags != leafFlag {
		w.problem("%s is a bucket cut off", where)
		return nil
	}
	return w.page(page, where, where, span{}, depth+1)
}

// problem reports what makes it unsafe to read the rows.
func (w *pageWalk) problem(format string, args ...any) {
	w.bad++
	w.report(fmt.Sprintf(format, args...) + "; " + remedy)
}

// row is one element of a page. Its bytes are the page's.
type row struct {
	key, value []byte
	bucket     bool
	child      uint64 // in a branch
}

// cutRow reads a row of a page; false when it is not all inside.
func cutRow(page []byte, flags uint16, i int) (r row, ok bool) {
	at := pageHeaderSize + i*elementSize
	if at+elementSize > len(page) {
		return r, false
	}
	native, e := binary.NativeEndian, page[at:]
	pos, key, value := uint64(native.Uint32(e[4:])), uint64(native.Uint32(e[8:])), uint64(native.Uint32(e[12:]))
	if flags == branchFlag {
		pos, key, value = uint64(native.Uint32(e)), uint64(native.Uint32(e[4:])), 0
		r.child = native.Uint64(e[8:])
	}
	if pos+key+value > uint64(len(e)) {
		return r, false
	}
	r.key, r.value = e[pos:pos+key], e[pos+key:pos+key+value]
	r.bucket = flags == leafFlag && native.Uint32(e)&bucketFlag != 0
	return r, true
}

// bitmap has a bit for each page.
type bitmap []uint64

func newBitmap(n uint64) bitmap { return make(bitmap, (n+63)/64) }

func (b bitmap) count() (n uint64) {
	for _, word := range b {
		n += uint64(bits.OnesCount64(word))
	}
	return n
}

func (b bitmap) set(i uint64)      { b[i/64] |= 1 << (i % 64) }
func (b bitmap) has(i uint64) bool { return b[i/64]&(1<<(i%64)) != 0 }
