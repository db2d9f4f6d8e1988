package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"nudge/agent"
	"nudge/memory"
	"nudge/memory/bolt"
	"nudge/memory/diary"
	"nudge/schedule"
)

// The commands that look after the data file itself. Checking it and backing it up go on beside a running nudge, which
// then does it; restoring and compacting replace the file, so that nobody may hold it.

// dataFile is a store that is one file.
type dataFile interface {
	memory.Store
	Check(ctx context.Context, report func(problem string), progress func(done, total int64)) (bolt.Checked, error)
	Backup(ctx context.Context, path string, overwrite bool, progress func(done, total int64)) (size int64, err error)
}

// dataFileCommands are check, backup, restore and compact.
func (a *app) dataFileCommands() []*cobra.Command {
	force := false
	check := &cobra.Command{
		Use:   "check",
		Short: "Check every page, row and index of the data file",
		Long: "Check every page, row and index of the data file, also while nudge runs. Each problem is a line that says what follows from it\n" +
			"and what to do; then the exit status is 1. Nothing is changed.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withDataFile(cmd.Context(), []string{"check"}, func(file dataFile) error { return a.check(cmd.Context(), file) })
		},
	}
	backup := &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the data file, also while nudge runs, and check the copy",
		Long: "Copy the data file, also while nudge runs, and check the copy. It holds conversations, diary, heartbeats and all else that the data\n" +
			"file does, but not the workspace. Only this account can read it.",
		Args: one,
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := filepath.Abs(args[0]) // a running nudge has another working directory
			if err != nil {
				return err
			}
			request := []string{"backup", fmt.Sprintf("--force=%t", force), path}
			return a.withDataFile(cmd.Context(), request, func(file dataFile) error { return a.backup(cmd.Context(), file, path, force) })
		},
	}
	backup.Flags().BoolVar(&force, "force", false, "replace FILE if it is there")
	restore := &cobra.Command{
		Use:   "restore FILE",
		Short: "Put a backup in the place of the data file, which is kept beside it",
		Long: "Check a backup and put a copy of it in the place of the data file, while nudge does not run. What was there is kept beside it under\n" +
			"a name with the date.",
		Args: one,
		RunE: func(cmd *cobra.Command, args []string) error { return a.restore(cmd.Context(), args[0]) },
	}
	compact := &cobra.Command{
		Use:   "compact",
		Short: "Give back space that the data file no longer needs",
		Long: "Give back space that the data file no longer needs, while nudge does not run. It takes room on the disk for what the file holds.\n" +
			"A large file that is mostly free is compacted at a start as well.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.compact() },
	}
	return []*cobra.Command{check, backup, restore, compact}
}

// withDataFile runs fn on the data file: on the one that runs here, by opening it to read, or through the process that
// holds it, which is given args.
func (a *app) withDataFile(ctx context.Context, args []string, fn func(dataFile) error) error {
	if a.host != nil {
		file, ok := a.host.store.(dataFile)
		if !ok {
			return failed(errors.New("the store is no file; use the tools of its database"))
		}
		return failed(fn(file))
	}
	path, options, err := a.dataFilePath()
	if err != nil {
		return err
	}
	file, err := bolt.OpenReadOnly(path, options)
	var locked *memory.LockedError
	switch {
	case errors.As(err, &locked):
		return a.overSocket(ctx, filepath.Dir(path), locked, args)
	case errors.Is(err, fs.ErrNotExist):
		return failed(fmt.Errorf("there is no data file %s yet; name its directory with --data", path))
	case err != nil:
		return failed(err)
	}
	return failed(errors.Join(fn(file), file.Close()))
}

// dataFilePath is where the data file is, and how it is opened.
func (a *app) dataFilePath() (string, bolt.Options, error) {
	_, dir, err := a.config()
	options := bolt.Options{Log: a.log()}
	if _, err := os.Lstat(filepath.Join(dir, socketName)); err == nil {
		options.LockWait = heldWait
	}
	return filepath.Join(dir, dataFileName), options, err
}

const dataFileName = "nudge.db"

// mostProblems is how many problems are told one by one.
const mostProblems = 100

func (a *app) check(ctx context.Context, file dataFile) error {
	problems := 0
	report := func(problem string) {
		if problems++; problems <= mostProblems {
			fmt.Fprintln(a.out, problem)
		}
	}
	progress, end := a.progress("checking")
	n, err := file.Check(ctx, report, progress)
	end()
	if err == nil && problems == 0 { // what the rows mean can be told only of a file that is sound
		err = file.View(ctx, func(tx memory.Tx) error { return checkRecords(tx, report) })
	}
	switch {
	case err != nil:
		return err
	case problems > mostProblems:
		fmt.Fprintf(a.out, "and %d more\n", problems-mostProblems)
	}
	if problems > 0 {
		return fmt.Errorf("%d problems were found; make a backup of the file as it is before anything else", problems)
	}
	_, err = fmt.Fprintf(a.out, "no problems: %s, %s, %s\n", schedule.Counted(int(n.Pages), "page"), schedule.Counted(int(n.Rows), "row"), schedule.Counted(int(n.Sessions), "session"))
	return err
}

// checkRecords looks whether what the rooms keep agrees.
func checkRecords(tx memory.Tx, report func(problem string)) error {
	return errors.Join(agent.Check(tx, report), schedule.Check(tx, report), diary.Check(tx, report))
}

func (a *app) backup(ctx context.Context, file dataFile, path string, force bool) error {
	progress, end := a.progress("backing up")
	size, err := file.Backup(ctx, path, force, progress)
	end()
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w; --force replaces it", err)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "%s: %s, checked\n", path, megabytes(size))
	return a.tellProblems(ctx, file, "the backup is a true copy, but what it is of has %d problems; nudge check tells them")
}

func (a *app) restore(ctx context.Context, backup string) error {
	path, options, err := a.dataFilePath()
	if err != nil {
		return err
	}
	progress, end := a.progress("restoring")
	done, err := bolt.Restore(ctx, path, backup, options, progress)
	end()
	if err != nil {
		return failed(err)
	}
	fmt.Fprintf(a.out, "%s: restored, %s\n", path, megabytes(done.Size))
	if done.Kept != "" {
		fmt.Fprintf(a.out, "%s: what was there before; delete it when all is well\n", done.Kept)
	}
	file, err := bolt.OpenReadOnly(path, options)
	if err != nil {
		return failed(err)
	}
	err = a.tellProblems(ctx, file, "the backup was whole, but its records have %d problems; nudge check tells them")
	return failed(errors.Join(err, file.Close()))
}

// tellProblems says how many problems the records have. Space that is to be had back is none of them.
func (a *app) tellProblems(ctx context.Context, file memory.Store, text string) error {
	problems := 0
	err := file.View(ctx, func(tx memory.Tx) error { return checkRecords(tx, func(string) { problems++ }) })
	if problems > 0 {
		fmt.Fprintf(a.errs, "nudge: "+text+"\n", problems)
	}
	return err
}

func (a *app) compact() error {
	path, options, err := a.dataFilePath()
	if err != nil {
		return err
	}
	before, after, err := bolt.Compact(path, options)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("there is no data file %s yet; name its directory with --data", path)
	}
	if err != nil {
		return failed(err)
	}
	_, err = fmt.Fprintf(a.out, "%s: %s before, %s now\n", path, megabytes(before), megabytes(after))
	return failed(err)
}

// megabytes is a size in words; in kilobytes where it is less than one.
func megabytes(bytes int64) string {
	if bytes < 1e6 {
		return fmt.Sprintf("%d KB", (bytes+500)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
}

// progress shows on a terminal how much of a long work is done, until end is called.
func (a *app) progress(what string) (show func(done, total int64), end func()) {
	if !a.isTerminal(a.errs) {
		return nil, func() {}
	}
	last := int64(-1)
	show = func(done, total int64) {
		if percent := 100 * done / max(total, 1); percent != last {
			last = percent
			fmt.Fprintf(a.errs, "\r%s: %d %%", what, percent)
		}
	}
	return show, func() {
		if last >= 0 {
			fmt.Fprint(a.errs, "\r\x1b[K")
		}
	}
}
