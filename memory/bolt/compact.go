package bolt

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"

	"go.etcd.io/bbolt"

	"nudge/memory"
)

const (
	// compactFrom is the size above which a file that is mostly free is compacted when it is opened.
	compactFrom = 64 << 20
	never       = -1
	// compactEnd is put behind a file's name for the one that is to replace it. Only who holds the lock writes it, so one
	// that is there was left behind.
	compactEnd = ".compact"
	// compactBatch is how many bytes of rows one commit of compacting has, which bounds the memory it takes.
	compactBatch = 4 << 20
	// spareRoom is what making a file may need besides its own size.
	spareRoom = 1 << 20
)

// Space is how many bytes a data file has, and how many of them hold nothing. They are used again before the file grows;
// [Compact] gives them back.
type Space struct{ Size, Free int64 }

// Space tells how the bytes of the data file are used.
func (s *Store) Space() (Space, error) {
	if err := s.begin(); err != nil {
		return Space{}, fmt.Errorf("measure %s: %w", s.path, err)
	}
	defer s.begun.Done()
	b, m, _, err := s.snapshot(context.Background())
	if err != nil {
		return Space{}, fmt.Errorf("measure %s: %w", s.path, err)
	}
	defer func() { _ = s.endRead(b) }() // of a read, which has nothing to undo
	info, err := s.file.Stat()
	free := uint64(0)
	if err == nil {
		err = readFreelist(s.file, m, func(uint64) { free++ }, nil)
	}
	if err != nil {
		return Space{}, fmt.Errorf("measure %s: %w", s.path, err)
	}
	return m.space(info.Size(), free), nil
}

// space is that of a file of so many bytes with so many pages in the list of free ones. Behind its last page it is free as well.
func (m meta) space(size int64, free uint64) Space {
	return Space{Size: size, Free: size - int64(m.pages-free)*m.pageSize}
}

// Compact makes the data file at path as small as what it holds, and returns its size before and after. It refuses what
// [Open] refuses, a file that [Store.Check] finds fault with, and a disk without room for both files, with an error that
// wraps [memory.ErrFull]. The new file takes the old one's place only when it is on disk and was found to hold the same:
// wherever it ends, a whole file stands at path.
func Compact(path string, opts Options) (before, after int64, err error) {
	opts.compact = never
	if _, err := os.Stat(path); err != nil {
		return 0, 0, fmt.Errorf("compact %s: %w", path, err)
	}
	s, err := Open(path, opts)
	if err != nil {
		return 0, 0, err
	}
	after, _, err = s.compact()
	return s.atOpen.Size, after, errors.Join(err, s.Close())
}

// worthCompacting reports whether more than half of a large file holds nothing.
func (s *Store) worthCompacting() bool {
	from := int64(compactFrom)
	if s.opts.compact != 0 {
		from = s.opts.compact
	}
	return from != never && s.atOpen.Size > from && s.atOpen.Free > s.atOpen.Size/2
}

// compactAtOpen compacts a file that was just opened and reports whether it was replaced. When it cannot be, it is used as
// it is.
func (s *Store) compactAtOpen() (replaced bool) {
	after, replaced, err := s.compact()
	if err != nil {
		s.log.Warn("the data file is mostly free space and could not be compacted", "file", s.path, "error", err)
		return replaced
	}
	s.log.Info("the data file was compacted", "file", s.path, "before", s.atOpen.Size, "after", after)
	return replaced
}

// compact replaces the file by a small one that holds the same, and returns that one's size. Nothing else may use the
// store, which, once its file was replaced, is of no more use than to be closed.
func (s *Store) compact() (size int64, replaced bool, err error) {
	path, err := filepath.EvalSymlinks(s.path)
	if err != nil {
		return 0, false, fmt.Errorf("compact %s: %w", s.path, err)
	}
	made := path + compactEnd
	defer func() {
		if err != nil {
			err = fmt.Errorf("compact %s: %w", path, full(err))
		}
	}()
	if err := s.isSound(context.Background(), nil); err != nil {
		return 0, false, err
	}
	live := s.atOpen.Size - s.atOpen.Free
	if err := s.opts.needRoom(filepath.Dir(path), live+live/8+spareRoom); err != nil {
		return 0, false, err
	}
	if err := removeIfThere(made); err != nil {
		return 0, false, err
	}
	defer func() {
		if !replaced {
			err = errors.Join(err, removeIfThere(made))
		}
	}()
	if err := s.copyRows(made); err != nil {
		return 0, false, err
	}
	if size, err = s.holdsTheSame(made); err != nil {
		return 0, false, fmt.Errorf("the new file is not what it should be, and the old one stays: %w", err)
	}
	replaced, err = s.opts.replace(made, path)
	return size, replaced, err
}

// isSound returns an error for the first problem that a check finds and that a new copy of the file would have, too.
func (s *Store) isSound(ctx context.Context, progress func(done, total int64)) error {
	var first error
	told := func(problem string) {
		if first == nil {
			first = fmt.Errorf("%w: %s", memory.ErrDamaged, problem)
		}
	}
	if _, err := s.check(ctx, told, func(string) {}, progress); err != nil {
		return err
	}
	return first
}

// copyRows writes every row into a new file, and that to disk.
func (s *Store) copyRows(made string) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = damaged("read", s.path, p)
		}
	}()
	if err := s.opts.at("make"); err != nil {
		return err
	}
	// Nothing depends on the file before it is whole, so one sync at its end is enough.
	to, err := bbolt.Open(made, 0o600, &bbolt.Options{PageSize: pageSize, FreelistType: freelist, NoSync: true, NoGrowSync: true, NoStatistics: true})
	if err != nil {
		return err
	}
	to.AllocSize = minGrow
	err = bbolt.Compact(to, s.db, compactBatch)
	if err == nil {
		err = s.opts.at("sync")
	}
	if err == nil {
		err = to.Sync()
	}
	return errors.Join(err, to.Close())
}

// holdsTheSame checks a new file and compares each row with this one's. It returns the new file's size.
func (s *Store) holdsTheSame(made string) (size int64, err error) {
	if err := s.opts.at("compare"); err != nil {
		return 0, err
	}
	other, err := OpenReadOnly(made, s.opts)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, other.Close()) }()
	if err := other.isSound(context.Background(), nil); err != nil {
		return 0, err
	}
	here, err := s.digest()
	if err != nil {
		return 0, err
	}
	there, err := other.digest()
	if err == nil && here != there {
		err = errors.New("it holds other rows")
	}
	return other.atOpen.Size, err
}

// digest stands for all that the file holds.
func (s *Store) digest() (sum [sha256.Size]byte, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = damaged("read", s.path, p)
		}
	}()
	all := sha256.New()
	err = s.db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bbolt.Bucket) error { return digestBucket(all, name, b) })
	})
	return [sha256.Size]byte(all.Sum(nil)), err
}

func digestBucket(all hash.Hash, name []byte, b *bbolt.Bucket) error {
	fmt.Fprintf(all, "bucket %d:%s next %d\n", len(name), name, b.Sequence())
	err := b.ForEach(func(k, v []byte) error {
		if v == nil {
			return digestBucket(all, k, b.Bucket(k))
		}
		fmt.Fprintf(all, "row %d:%d:%s%s\n", len(k), len(v), k, v)
		return nil
	})
	fmt.Fprint(all, "end\n")
	return err
}

// replace puts a file that is on disk in another's place. done is false when nothing was replaced.
func (o Options) replace(made, path string) (done bool, err error) {
	if err := o.at("rename"); err != nil {
		return false, err
	}
	if err := os.Rename(made, path); err != nil {
		return false, err
	}
	if err := o.at("sync directory"); err != nil {
		return true, err
	}
	return true, syncDir(filepath.Dir(path))
}

// at is where a test can have the making of a file end.
func (o Options) at(step string) error {
	if o.step == nil {
		return nil
	}
	return o.step(step)
}

// needRoom returns an error when a directory has too little room for so many bytes. Where the room is not known, there is
// taken to be enough.
func (o Options) needRoom(dir string, need int64) error {
	_, room, err := o.disk(dir)
	if err != nil || room >= need {
		return nil
	}
	return fmt.Errorf("%w: %s has room for %s and %s is needed; free some", memory.ErrFull, dir, inMB(room), inMB(need))
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
