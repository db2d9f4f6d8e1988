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
// error that wraps [memory.ErrDamaged] when the file is empty, cut off, foreign or damaged, and with one that wraps
// [ErrNewer] when it is of a later version. A file that is refused is left as it is.
func Open(path string, opts Options) (*Store, error) {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.LockWait <= 0 {
		opts.LockWait = defaultLockWait
	}
	if err := create(path); err != nil {
		return nil, fmt.Errorf("create %s: %w", path, err)
	}
	if err := examine(path, opts.Log); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	s := &Store{path: path, log: opts.Log}
	if err := s.connect(opts); err != nil {
		return nil, err
	}
	if err := writeHolder(path); err != nil {
		s.log.Warn("the note of who holds the data file cannot be written", "error", err)
	}
	s.close = sync.OnceValue(s.shut)
	s.writer = writer{store: s, queue: make(chan *call, maxBatch), turn: make(chan struct{}, 1)}
	return s, nil
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

// examine refuses what must not be mapped, and takes away what others may do with the file.
func examine(path string, log *slog.Logger) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is not a file")
	}
	spare, err := inspect(f)
	if err != nil {
		return refuse(err)
	}
	if !spare {
		log.Warn("one of the data file's two heads is damaged; the other is used; make a backup", "file", path)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		log.Warn("others could read the data file; its mode is now 0600", "file", path, "mode", info.Mode().Perm())
		return f.Chmod(0o600)
	}
	return nil
}

// refuse makes the error for a file that is not opened.
func refuse(why any) error {
	return fmt.Errorf("%w: %s; restore a backup, or move the file away to start with an empty one",
		memory.ErrDamaged, oneLine(why))
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
	if errors.Is(err, berrors.ErrTimeout) {
		return lockedError(s.path)
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", s.path, err)
	}
	if err := s.settle(); err != nil {
		if e := s.db.Close(); e != nil {
			s.log.Warn("a refused data file does not close", "file", s.path, "error", e)
		}
		return fmt.Errorf("open %s: %w", s.path, err)
	}
	return nil
}

// load calls bbolt.Open and takes its panics for the damage that they mean.
func (s *Store) load(opts Options, mapped int) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = refuse(p)
			if s.file != nil {
				_ = s.file.Close() // gives the lock back; there is nothing to save
			}
		}
	}()
	s.db, err = bbolt.Open(s.path, 0o600, &bbolt.Options{
		Timeout:         opts.LockWait,
		FreelistType:    freelist,
		InitialMmapSize: mapped,
		MaxSize:         opts.maxBytes,
		NoStatistics:    true,
		OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
			// What was examined is what is to be opened; a file gone meanwhile is not made anew in bbolt's way.
			f, err := os.OpenFile(name, flag&^os.O_CREATE, mode)
			s.file = f
			return f, err
		},
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
