package bolt

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// The layout of a bbolt file, as far as it must be known before the file is mapped. Reading a mapped page that the
// file no longer has would end the process, and so would a free list that claims to be larger than memory.
const (
	pageHeaderSize = 16 // id 8, flags 2, count 2, overflow 4
	metaSize       = 64 // magic 4, version 4, page size 4, flags 4, root 16, free list 8, pages 8, number 8, sum 8
	metaMagic      = 0xED0CDAED
	metaVersion    = 2
	freelistFlag   = 0x10
	noFreelist     = ^uint64(0)
	manyFree       = 0xffff // the count that means: the true count is the first id

	minPageSize, maxPageSize = 1 << 10, 16 << 20
)

// meta is one of a file's two heads. The newer one that is whole counts.
type meta struct {
	pageSize int64
	root     uint64 // page of the bucket of buckets
	freelist uint64 // page of the free list
	pages    uint64 // how many the file must have
	number   uint64 // of the transaction that wrote it
}

// inspect reads the heads and the free list of a bbolt file and says what is wrong with them. spare is false when
// one of the two heads is damaged, which the other makes good; free is how many pages are.
func inspect(f *os.File) (m meta, spare bool, free uint64, err error) {
	info, err := f.Stat()
	if err != nil {
		return m, false, 0, err
	}
	size := info.Size()
	if size == 0 {
		return m, false, 0, errors.New("it is empty")
	}
	if m, spare, err = newestMeta(f, size); err != nil {
		return m, false, 0, err
	}
	if err := m.fits(size); err != nil {
		return m, false, 0, err
	}
	if m.freelist == noFreelist {
		return m, false, 0, errors.New("it has no list of free pages, so another program wrote it")
	}
	err = readFreelist(f, m, func(uint64) { free++ }, nil)
	return m, spare, free, err
}

// fits returns an error when a file of that size has not all the pages that it must have.
func (m meta) fits(size int64) error {
	if need := m.pages * uint64(m.pageSize); m.pages > uint64(size) || uint64(size) < need {
		return fmt.Errorf("it has %d bytes of %d and was cut off", size, need)
	}
	return nil
}

// newestMeta returns the head that counts, and whether both are whole.
func newestMeta(f io.ReaderAt, size int64) (m meta, both bool, err error) {
	first, ok := readMeta(f, 0)
	if ok {
		second, ok := readMeta(f, first.pageSize)
		if ok && second.number > first.number {
			return second, true, nil
		}
		return first, ok, nil
	}
	// Without the first head the page size, and so the place of the second, is not known.
	for at := int64(minPageSize); at <= maxPageSize && at < size; at *= 2 {
		if m, ok := readMeta(f, at); ok && m.pageSize == at {
			return m, false, nil
		}
	}
	return m, false, errors.New("it is no data file, or both its heads are damaged")
}

// readMeta reads the head in the page at an offset; false means that there is no whole one.
func readMeta(f io.ReaderAt, at int64) (m meta, ok bool) {
	var page [pageHeaderSize + metaSize]byte
	if _, err := f.ReadAt(page[:], at); err != nil {
		return m, false
	}
	b, native := page[pageHeaderSize:], binary.NativeEndian
	sum := fnv.New64a()
	_, _ = sum.Write(b[:metaSize-8]) // a hash takes everything
	if native.Uint32(b) != metaMagic || native.Uint32(b[4:]) != metaVersion || native.Uint64(b[56:]) != sum.Sum64() {
		return m, false
	}
	m = meta{
		pageSize: int64(native.Uint32(b[8:])),
		root:     native.Uint64(b[16:]),
		freelist: native.Uint64(b[32:]),
		pages:    native.Uint64(b[40:]),
		number:   native.Uint64(b[48:]),
	}
	return m, m.pageSize >= minPageSize && m.pageSize <= maxPageSize
}

// readFreelist calls free for each page in the list of free pages, and own for each that the list itself takes up. It
// returns an error when the list is damaged: a page that is free by mistake would be written over.
func readFreelist(f io.ReaderAt, m meta, free, own func(page uint64)) error {
	bad := errors.New("its list of free pages is damaged")
	if m.freelist < 2 || m.freelist >= m.pages {
		return bad
	}
	r := bufio.NewReader(io.NewSectionReader(f, int64(m.freelist)*m.pageSize, int64(m.pages-m.freelist)*m.pageSize))
	var head [pageHeaderSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return fmt.Errorf("its list of free pages cannot be read: %w", err)
	}
	h := cutHeader(head[:])
	if h.id != m.freelist || h.flags != freelistFlag || h.over >= m.pages-m.freelist {
		return bad
	}
	for i := range h.over + 1 {
		if own != nil {
			own(m.freelist + i)
		}
	}
	var word [8]byte
	next := func() (uint64, error) {
		_, err := io.ReadFull(r, word[:])
		return binary.NativeEndian.Uint64(word[:]), err
	}
	count := uint64(h.count)
	if count == manyFree {
		var err error
		if count, err = next(); err != nil {
			return bad
		}
	}
	for last := uint64(1); count > 0; count-- {
		id, err := next()
		if err != nil || id <= last || id >= m.pages {
			return bad
		}
		free(id)
		last = id
	}
	return nil
}

// header is what each page begins with.
type header struct {
	id           uint64
	flags, count uint16
	over         uint64 // pages that belong to it besides the first
}

func cutHeader(b []byte) header {
	native := binary.NativeEndian
	return header{id: native.Uint64(b), flags: native.Uint16(b[8:]), count: native.Uint16(b[10:]), over: uint64(native.Uint32(b[12:]))}
}
