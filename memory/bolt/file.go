package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"nudge/memory"
)

const (
	defaultLockWait = time.Second

	// pageSize is fixed so that a file moves between machines and costs the same on all.
	pageSize = 4 << 10
	// reserve is how much address space is mapped at once. While the file is smaller, growing it waits for no
	// reader. It costs neither memory nor disk.
	reserve = int64(16 << 30)
	// A file grows by a share of its size within these bounds, so that a small one stays small and a large one
	// is seldom grown, each time with a sync of its own.
	growShare, minGrow, maxGrow = 32, 64 << 10, 16 << 20
	// ahead is how far behind the last page in use zeros are written at once.
	ahead = 256 << 10
	// freelist is bbolt's list of free pages that gives out the lowest first. A commit's pages then lie side by
	// side, which costs a disk about what a single page does; the other kind scatters them.
	freelist = bbolt.FreelistArrayType
)

// Open opens the data file at path and makes it, mode 0600, and its directory, mode 0700, when they are missing. It
// fails with a [*memory.LockedError] when another process keeps the file longer than Options.LockWait, with an
// error that wraps [memory.ErrDamaged] when the file is empty, cut off, foreign or damaged, with one that wraps
// [ErrNewer] when it is of a later version, and on the file systems of a network with one that wraps [ErrFileSystem],
// unless [UnsafeEnv] is set. A file that is refused is left as it is. A large one that is mostly free is compacted, if
// there is room.
func Open(path string, opts Options) (*Store, error) {
	s, err := openStore(path, opts, false)
	if err != nil {
		return nil, err
	}
	s.tidy()
	if s.worthCompacting() && s.compactAtOpen() {
		opts.compact = never
		if err := s.Close(); err != nil {
			return nil, err
		}
		return Open(path, opts)
	}
	if err := writeHolder(path); err != nil {
		s.log.Warn("the note of who holds the data file cannot be written", "error", err)
	}
	return s, nil
}

// tidy takes away what a compaction or a restore has left that was cut short. Both hold the lock, as this does.
func (s *Store) tidy() {
	path, err := filepath.EvalSymlinks(s.path)
	for _, end := range []string{compactEnd, restoreEnd} {
		if err == nil {
			err = removeIfThere(path + end)
		}
	}
	if err != nil {
		s.log.Warn("what was left beside the data file cannot be removed", "error", err)
	}
}

// OpenReadOnly opens the data file at path beside others that do the same, and leaves everything as it is: every Update
// fails. It refuses what [Open] refuses, and a file of an earlier version with an error that wraps [ErrOlder]; when there
// is none, the error wraps [fs.ErrNotExist].
func OpenReadOnly(path string, opts Options) (*Store, error) { return openStore(path, opts, true) }

func openStore(path string, opts Options, readOnly bool) (*Store, error) {
	opts = opts.withDefaults()
	if err := opts.checkDisk(path); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	if !readOnly {
		if err := create(path); err != nil {
			return nil, fmt.Errorf("create %s: %w", path, mayNot(full(err)))
		}
	}
	s := &Store{path: path, log: opts.Log, readOnly: readOnly, opts: opts}
	if err := s.connect(opts); err != nil {
		return nil, err
	}
	s.close = sync.OnceValue(s.shut)
	s.writer = writer{store: s, queue: make(chan *call, maxBatch), turn: make(chan struct{}, 1)}
	return s, nil
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.LockWait <= 0 {
		o.LockWait = defaultLockWait
	}
	if o.disk == nil {
		o.disk = diskOf
	}
	return o
}

// create makes the file unless there is one. It is built aside and put in its place whole: whenever the process
// ends, what stands at path is a data file or nothing.
func create(path string) (err error) {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, filepath.Base(path)+".new-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	if err := f.Close(); err != nil {
		return err
	}
	if err := build(f.Name()); err != nil {
		return err
	}
	// Unlike a rename, a link never replaces what another process has put there meanwhile.
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(dir)
}

// build fills an empty file with the buckets and the schema number.
func build(path string) error {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{PageSize: pageSize, FreelistType: freelist})
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range places {
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		return putSchema(tx)
	})
	if e := db.Close(); err == nil {
		err = e
	}
	return err
}

// syncDir makes the new name in a directory outlast a power cut. Windows cannot and need not do it.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if e := d.Close(); err == nil {
		err = e
	}
	return err
}

// examine refuses what must not be mapped, and takes away what others may do with the file. The caller holds the lock:
// a file that is being written can seem damaged.
func (s *Store) examine(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	m, spare, free, err := inspect(f)
	if err != nil {
		return refuse(err)
	}
	s.pageSize, s.atOpen = m.pageSize, m.space(info.Size(), free)
	if !spare {
		s.log.Warn("one of the data file's two heads is damaged; the other is used; make a backup", "file", s.path)
	}
	if s.readOnly || runtime.GOOS == "windows" || info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	s.log.Warn("others could read the data file; its mode is now 0600", "file", s.path, "mode", info.Mode().Perm())
	return f.Chmod(0o600)
}

// wayOut ends what is said of a data file that is not opened.
const wayOut = "; restore a backup, or move the file away to start with an empty one"

// refuse makes the error for a file that is not opened.
func refuse(why any) error {
	return fmt.Errorf("%w: %s"+wayOut, memory.ErrDamaged, oneLine(why))
}

// connect locks and maps the file and brings its schema up to date.
func (s *Store) connect(opts Options) error {
	mapped := int64(0)
	if strconv.IntSize == 64 && runtime.GOOS != "windows" { // where mapping more than the file is free
		mapped = reserve
	}
	err := s.load(opts, int(mapped))
	if errors.Is(err, syscall.ENOMEM) {
		err = s.load(opts, 0) // address space is limited; then growing may wait for readers
	}
	var locked *memory.LockedError
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return lockedError(s.path)
	case errors.As(err, &locked):
		return err
	case err != nil:
		return fmt.Errorf("open %s: %w", s.path, err)
	}
	s.headPages, s.unmap, err = mapHeads(s.file, s.pageSize)
	if err == nil {
		if err = s.settle(); err != nil {
			err = errors.Join(err, s.unmap())
		}
	}
	if err != nil {
		if e := s.db.Close(); e != nil {
			s.log.Warn("a refused data file does not close", "file", s.path, "error", e)
		}
		return fmt.Errorf("open %s: %w", s.path, err)
	}
	return nil
}

// load locks and examines the file, calls bbolt.Open and takes its panics for the damage that they mean.
func (s *Store) load(opts Options, mapped int) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	if s.file, err = acquire(s.path, s.readOnly, opts.LockWait); err != nil {
		return err
	}
	if err := s.examine(s.file); err != nil {
		return errors.Join(err, s.file.Close())
	}
	defer func() {
		if p := recover(); p != nil {
			err = refuse(p)
			_ = s.file.Close() // gives the lock back; there is nothing to save
		}
	}()
	s.db, err = bbolt.Open(s.path, 0o600, &bbolt.Options{
		ReadOnly:        s.readOnly,
		PreLoadFreelist: true,
		Timeout:         opts.LockWait,
		FreelistType:    freelist,
		InitialMmapSize: mapped,
		MaxSize:         opts.maxBytes,
		NoStatistics:    true,
		// What was locked and examined is what is to be opened.
		OpenFile: func(string, int, os.FileMode) (*os.File, error) { return s.file, nil },
	})
	if errors.Is(err, berrors.ErrInvalid) || errors.Is(err, berrors.ErrChecksum) || errors.Is(err, berrors.ErrVersionMismatch) {
		return refuse(err)
	}
	return err
}

// grows tells bbolt by how much to lengthen the file when the commit of tx needs it.
func (s *Store) grows(tx *bbolt.Tx) {
	s.db.AllocSize = int(min(max(tx.Size()/growShare, minGrow), maxGrow)) // read by this commit only
}
