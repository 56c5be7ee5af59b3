package filesource

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// update is one call of a Watcher.
type update struct {
	content string
	err     error
}

// watching runs a Watcher over a path for the time of a synctest bubble.
func watching(t *testing.T, path string) <-chan update {
	t.Helper()
	files, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	updates, done := make(chan update), make(chan struct{})
	go func() {
		defer close(done)
		NewWatcher([]string{path}, files).Run(ctx, func(files []File, err error) {
			select {
			case updates <- update{contentOf(files), err}:
			case <-ctx.Done():
			}
		})
	}()
	t.Cleanup(func() { cancel(); <-done })
	return updates
}

func contentOf(files []File) string {
	var all []string
	for _, f := range files {
		all = append(all, filepath.Base(f.Name)+"="+string(f.Data)+f.unreadable)
	}
	return strings.Join(all, " ")
}

// next is what the Watcher tells within a second.
func next(t *testing.T, updates <-chan update) update {
	t.Helper()
	select {
	case u := <-updates:
		return u
	case <-time.After(time.Second):
		t.Fatal("no change was told of within a second")
		return update{}
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestChangesAreToldWithinASecond(t *testing.T) {
	for name, test := range map[string]struct {
		change func(t *testing.T, dir string)
		want   string
	}{
		"a file is written in place": {
			func(t *testing.T, dir string) { write(t, dir+"/a.yaml", "2") },
			"a.yaml=2 b.yaml=1",
		},
		"a file is replaced by renaming": {
			func(t *testing.T, dir string) {
				write(t, dir+"/.a.yaml.tmp", "2")
				must(t, os.Rename(dir+"/.a.yaml.tmp", dir+"/a.yaml"))
			},
			"a.yaml=2 b.yaml=1",
		},
		"an editor moves the old file away and writes a new one": {
			func(t *testing.T, dir string) {
				must(t, os.Rename(dir+"/a.yaml", dir+"/a.yaml~"))
				write(t, dir+"/a.yaml", "2")
			},
			"a.yaml=2 b.yaml=1",
		},
		"a file comes": {
			func(t *testing.T, dir string) { write(t, dir+"/c.yml", "1") },
			"a.yaml=1 b.yaml=1 c.yml=1",
		},
		"a file comes in a directory of its own": {
			func(t *testing.T, dir string) { write(t, dir+"/more/c.json", "1") },
			"a.yaml=1 b.yaml=1 c.json=1",
		},
		"a file goes": {
			func(t *testing.T, dir string) { must(t, os.Remove(dir+"/a.yaml")) },
			"b.yaml=1",
		},
		"all files go": {
			func(t *testing.T, dir string) {
				must(t, os.Remove(dir+"/a.yaml"))
				must(t, os.Remove(dir+"/b.yaml"))
			},
			"",
		},
		"a link leads nowhere": {
			func(t *testing.T, dir string) { must(t, os.Symlink(dir+"/nowhere", dir+"/c.yaml")) },
			"a.yaml=1 b.yaml=1 c.yaml=read the file: no such file or directory",
		},
		"the directory is replaced": {
			func(t *testing.T, dir string) {
				must(t, os.Rename(dir, dir+".old"))
				write(t, dir+"/a.yaml", "2")
			},
			"a.yaml=2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "policies")
			write(t, dir+"/a.yaml", "1")
			write(t, dir+"/b.yaml", "1")
			synctest.Test(t, func(t *testing.T) {
				updates := watching(t, dir)
				synctest.Wait()
				test.change(t, dir)
				if diff := cmp.Diff(update{content: test.want}, next(t, updates), cmp.AllowUnexported(update{})); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestConfigMapMountIsSwapped(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/..1/a.yaml", "1")
	must(t, os.Symlink("..1", dir+"/..data"))
	must(t, os.Symlink("..data/a.yaml", dir+"/a.yaml"))
	for name, path := range map[string]string{"the mount": dir, "a file of it": dir + "/a.yaml"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				updates := watching(t, path)
				synctest.Wait()
				content := t.Name()
				write(t, dir+"/..2/a.yaml", content)
				must(t, os.Symlink("..2", dir+"/..data_tmp"))
				must(t, os.Rename(dir+"/..data_tmp", dir+"/..data"))
				if got := next(t, updates).content; got != "a.yaml="+content {
					t.Errorf("got %q", got)
				}
			})
		})
	}
}

func TestNothingIsToldWhereNothingChanged(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, dir string){
		"a file is written again":     func(t *testing.T, dir string) { write(t, dir+"/a.yaml", "1") },
		"a hidden file comes":         func(t *testing.T, dir string) { write(t, dir+"/.a.yaml.swp", "2") },
		"a hidden directory comes":    func(t *testing.T, dir string) { write(t, dir+"/.git/a.yaml", "2") },
		"a file of another kind":      func(t *testing.T, dir string) { write(t, dir+"/README.md", "2") },
		"a directory with files' end": func(t *testing.T, dir string) { must(t, os.Mkdir(dir+"/c.yaml", 0o755)) },
		"a link to where it stands":   func(t *testing.T, dir string) { must(t, os.Symlink(dir, dir+"/again")) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir+"/a.yaml", "1")
			synctest.Test(t, func(t *testing.T) {
				updates := watching(t, dir)
				synctest.Wait()
				change(t, dir)
				select {
				case u := <-updates:
					t.Errorf("told of %+v", u)
				case <-time.After(time.Minute):
				}
			})
		})
	}
}

func TestHalfAFileIsNotTaken(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/a.yaml", "1")
	synctest.Test(t, func(t *testing.T) {
		updates := watching(t, dir)
		synctest.Wait()
		go func() {
			for _, content := range []string{"", "2", "23"} {
				write(t, dir+"/a.yaml", content)
				wait(t.Context(), settleFor/2)
			}
		}()
		if got := next(t, updates).content; got != "a.yaml=23" {
			t.Errorf("taken: %q", got)
		}
	})
}

func TestFilesThatNeverStayStillAreTaken(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/a.yaml", "1")
	synctest.Test(t, func(t *testing.T) {
		updates := watching(t, dir)
		stop := make(chan struct{})
		defer close(stop)
		go func() {
			for i := 0; ; i++ {
				write(t, dir+"/a.yaml", strings.Repeat("x", i%100))
				select {
				case <-stop:
					return
				case <-time.After(settleFor / 3):
				}
			}
		}()
		next(t, updates)
	})
}

func TestVanishedDirectoryIsToldOnceAndSoIsItsReturn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "policies")
	write(t, dir+"/a.yaml", "1")
	synctest.Test(t, func(t *testing.T) {
		updates := watching(t, dir)
		synctest.Wait()
		must(t, os.Rename(dir, dir+".old"))
		if u := next(t, updates); u.err == nil || !strings.Contains(u.err.Error(), "does not exist") {
			t.Errorf("told of %+v", u)
		}
		select {
		case u := <-updates:
			t.Errorf("told again: %+v", u)
		case <-time.After(time.Minute):
		}
		must(t, os.Rename(dir+".old", dir))
		if u := next(t, updates); u.err != nil || u.content != "a.yaml=1" {
			t.Errorf("told of %+v", u)
		}
	})
}

func TestOldFilesAreNotReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.yaml")
	write(t, path, "1")
	now := time.Now()
	must(t, os.Chtimes(path, now, now.Add(-time.Hour)))
	first := lookAt([]string{path}, "", now)
	if again := lookAt([]string{path}, first.stamp, now); first.stamp == "" || again.files != nil || again.stamp != first.stamp {
		t.Errorf("read again: %+v", again)
	}
	must(t, os.Chtimes(path, now, now))
	if fresh := lookAt([]string{path}, first.stamp, now); len(fresh.files) != 1 || fresh.stamp != "" {
		t.Errorf("a file that was just written is taken for settled: %+v", fresh)
	}
}

func TestPathsThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	for name, test := range map[string]struct{ path, want string }{
		"nothing there": {dir + "/nothing", "does not exist: name a directory of policies, or a file"},
		"a device":      {os.DevNull, "is neither a file nor a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Read(test.path); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
