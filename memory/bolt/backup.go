package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"nudge/memory"
)

// restoreEnd is put behind a file's name for the copy that is to replace it.
const restoreEnd = ".restore"

// Backup writes the state of the last commit to a new file at path, mode 0600, while the store goes on, and returns its
// size. The copy is on disk and was checked as [Store.Check] does before it bears that name. A file that is there already
// is replaced only with overwrite; else the error wraps [fs.ErrExist]. progress, which may be nil, is called with how
// much of the work is done.
func (s *Store) Backup(ctx context.Context, path string, overwrite bool, progress func(done, total int64)) (size int64, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("back up %s to %s: %w", s.path, path, full(err))
		}
	}()
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return 0, err
	case standsAt(s.file, path):
		return 0, errors.New("that is the data file itself; name another")
	case !info.Mode().IsRegular():
		return 0, errors.New("that is no file; name one")
	case !overwrite:
		return 0, fs.ErrExist
	}
	made, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*")
	if err != nil {
		return 0, mayNot(err)
	}
	defer func() { err = errors.Join(err, removeIfThere(made.Name())) }()
	size, err = s.copyTo(ctx, made, progress)
	if err != nil {
		return 0, errors.Join(err, made.Close())
	}
	if err := made.Close(); err != nil {
		return 0, err
	}
	if err := s.opts.at("check"); err != nil {
		return 0, err
	}
	if err := checkCopy(ctx, made.Name(), s.opts, true, halfway(progress)); err != nil {
		return 0, fmt.Errorf("nothing was written, since the copy is no good: %w", err)
	}
	return size, s.opts.place(made.Name(), path, overwrite)
}

// copyTo writes the state of the last commit to a file, and that to disk.
func (s *Store) copyTo(ctx context.Context, to *os.File, progress func(done, total int64)) (size int64, err error) {
	if err := s.begin(); err != nil {
		return 0, err
	}
	defer s.begun.Done()
	b, m, _, err := s.snapshot(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = s.endRead(b) }() // of a read, which has nothing to undo
	size = int64(m.pages) * m.pageSize
	if err := s.opts.needRoom(filepath.Dir(to.Name()), size); err != nil {
		return 0, err
	}
	if err := s.opts.at("copy"); err != nil {
		return 0, err
	}
	if _, err := b.WriteTo(&copying{ctx: ctx, to: to, total: 2 * size, progress: progress}); err != nil {
		return 0, cause(ctx, err)
	}
	return size, to.Sync()
}

// cause is the error of ctx when it has ended, since bbolt passes on its text only.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// copying is a writer that ends with its context and tells how far it is.
type copying struct {
	ctx         context.Context
	to          io.Writer
	done, total int64
	progress    func(done, total int64)
}

func (c *copying) Write(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.to.Write(p)
	c.done += int64(n)
	if c.progress != nil {
		c.progress(c.done, c.total)
	}
	return n, err
}

// halfway is a progress of which the first half is done.
func halfway(progress func(done, total int64)) func(done, total int64) {
	if progress == nil {
		return nil
	}
	return func(done, total int64) { progress(total+done, 2*total) }
}

// checkCopy checks a file that nobody else uses. Unless it is to be left as it is, one of an earlier version is brought up
// to date. A copy may lie where a data file may not.
func checkCopy(ctx context.Context, path string, opts Options, readOnly bool, progress func(done, total int64)) (err error) {
	opts.disk = func(string) (uint32, int64, error) { return 0, 0, errors.ErrUnsupported }
	opts.compact = never
	s, err := openStore(path, opts, readOnly)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return s.isSound(ctx, progress)
}

// place gives a file that is on disk its name.
func (o Options) place(made, path string, overwrite bool) error {
	if overwrite {
		_, err := o.replace(made, path)
		return err
	}
	if err := o.at("rename"); err != nil {
		return err
	}
	// Unlike a rename, a link replaces nothing that came there meanwhile. Not every file system has links.
	err := os.Link(made, path)
	if errors.Is(err, fs.ErrExist) {
		return err
	}
	if err != nil {
		_, err = o.replace(made, path)
		return err
	}
	return syncDir(filepath.Dir(path))
}

// Restored is what [Restore] did.
type Restored struct {
	Size int64
	Kept string // where the file is that stood there before; "" when there was none
}

// Restore puts a copy of a backup in the place of the data file at path, which nobody may hold: else the error is a
// [*memory.LockedError]. The copy is brought up to date when it is of an earlier version, and checked; a backup that is
// damaged is refused with an error that wraps [memory.ErrDamaged], one of a later version with [ErrNewer]. The file that
// stood at path is kept beside it under a name with the date, damaged as it may be. Wherever it ends, the old file or the
// new one stands at path, whole.
func Restore(ctx context.Context, path, backup string, opts Options, progress func(done, total int64)) (done Restored, err error) {
	defer func() {
		var locked *memory.LockedError
		if err != nil && !errors.As(err, &locked) {
			err = fmt.Errorf("restore %s from %s: %w", path, backup, full(err))
		}
	}()
	opts = opts.withDefaults()
	if err := opts.checkDisk(path); err != nil {
		return done, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return done, err
	}
	r := restoring{ctx: ctx, opts: opts, path: path, backup: backup, progress: progress}
	defer func() { err = errors.Join(err, r.end()) }()
	if err := r.lock(); err != nil {
		return done, err
	}
	size, err := r.copy()
	if err != nil {
		return done, err
	}
	kept, err := r.swap()
	return Restored{Size: size, Kept: kept}, err
}

// restoring is a restore under way.
type restoring struct {
	ctx          context.Context
	opts         Options
	path, backup string
	progress     func(done, total int64)

	target string   // what path stands for
	old    *os.File // the file there, locked; nil when there is none
	from   *os.File // the backup, locked
}

// lock keeps others from both files.
func (r *restoring) lock() (err error) {
	r.target, err = filepath.EvalSymlinks(r.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.target = r.path
	case err != nil:
		return err
	default:
		if r.old, err = acquire(r.path, false, r.opts.LockWait); err != nil {
			return err
		}
		if err := writeHolder(r.path); err != nil {
			r.opts.Log.Warn("the note of who holds the data file cannot be written", "error", err)
		}
		if standsAt(r.old, r.backup) {
			return errors.New("that is the data file itself; name a backup")
		}
	}
	r.from, err = acquire(r.backup, true, r.opts.LockWait)
	return err
}

// copy makes the file that is to stand at path, on disk and checked.
func (r *restoring) copy() (size int64, err error) {
	info, err := r.from.Stat()
	if err != nil {
		return 0, err
	}
	if err := r.opts.needRoom(filepath.Dir(r.target), info.Size()+spareRoom); err != nil {
		return 0, err
	}
	if err := removeIfThere(r.target + restoreEnd); err != nil {
		return 0, err
	}
	if err := r.opts.at("copy"); err != nil {
		return 0, err
	}
	made, err := os.OpenFile(r.target+restoreEnd, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, mayNot(err)
	}
	size, err = io.Copy(&copying{ctx: r.ctx, to: made, total: 2 * info.Size(), progress: r.progress}, r.from)
	if err == nil {
		err = made.Sync()
	}
	if err := errors.Join(err, made.Close()); err != nil {
		return 0, err
	}
	if err := r.opts.at("check"); err != nil {
		return 0, err
	}
	err = checkCopy(r.ctx, made.Name(), r.opts, false, halfway(r.progress))
	if errors.Is(err, memory.ErrDamaged) {
		err = &unsoundBackup{copied: made.Name(), err: err}
	}
	return size, err
}

// unsoundBackup says of a backup what was found in the copy that was made of it. What to do about a data file is no help then.
type unsoundBackup struct {
	copied string // where the copy was
	err    error
}

func (e *unsoundBackup) Unwrap() error { return e.err }

func (e *unsoundBackup) Error() string {
	text := strings.TrimPrefix(e.err.Error(), "open "+e.copied+": ")
	text = strings.Replace(text, memory.ErrDamaged.Error(), "the backup is damaged", 1)
	return strings.TrimSuffix(text, wayOut) + "; name another one: nothing was changed"
}

// swap gives the old file another name and the new one its own. In between, the old one has both.
func (r *restoring) swap() (kept string, err error) {
	if r.old == nil {
		return "", r.opts.place(r.target+restoreEnd, r.target, false)
	}
	if err := r.opts.at("keep"); err != nil {
		return "", err
	}
	base := r.target + ".before-restore-" + time.Now().Format("20060102-150405")
	kept = base
	for n := 2; ; n++ {
		err := os.Link(r.target, kept)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("keep the file that is there: %w", err)
		}
		kept = fmt.Sprintf("%s-%d", base, n)
	}
	replaced, err := r.opts.replace(r.target+restoreEnd, r.target)
	if !replaced {
		return "", errors.Join(err, os.Remove(kept))
	}
	return kept, err
}

// end gives the locks back and takes away what is left of a restore that failed.
func (r *restoring) end() error {
	var errs []error
	if r.from != nil {
		errs = append(errs, removeIfThere(r.target+restoreEnd), r.from.Close())
	}
	if r.old != nil {
		errs = append(errs, removeHolder(r.path), r.old.Close())
	}
	return errors.Join(errs...)
}
