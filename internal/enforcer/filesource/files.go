package filesource

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// maxFileBytes is more than an object can have in Kubernetes (1.5 MiB), and
	// little enough to be read twice a second.
	maxFileBytes = 4 << 20
	// maxFiles and maxDepth bound a directory that was named by mistake, such as /.
	maxFiles = 10_000
	maxDepth = 16
)

// File is one file as it was read.
type File struct {
	Name string
	Data []byte
	// unreadable says why there is no Data.
	unreadable string
}

// Read reads files, and of directories all YAML and JSON files in them and below.
// Hidden ones are left out; links are followed, as ConfigMap mounts need it. The
// error is about a path itself.
func Read(paths ...string) ([]File, error) {
	found, err := scan(paths)
	if err != nil {
		return nil, err
	}
	return found.read(), nil
}

// ReadStream reads one file from a stream, such as standard input.
func ReadStream(name string, r io.Reader) (File, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFileBytes+1))
	if err != nil {
		return File{}, fmt.Errorf("read %s: %w", name, err)
	}
	return newFile(name, data), nil
}

func newFile(name string, data []byte) File {
	if len(data) > maxFileBytes {
		return File{Name: name, unreadable: fmt.Sprintf("the file is larger than %d MiB; split it", maxFileBytes>>20)}
	}
	return File{Name: name, Data: data}
}

// found is what a look at some paths turned up, without reading files.
type found struct {
	files []string
	// stamp changes when a file's size or time does, or a file comes or goes.
	stamp string
	// newest is when a file was last written.
	newest time.Time
}

// finder collects what is below some paths.
type finder struct {
	found
	stamp   bytes.Buffer
	visited map[string]bool // real paths, so that links make no cycles
}

func scan(paths []string) (found, error) {
	f := &finder{visited: map[string]bool{}}
	for _, path := range paths {
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return found{}, reachError(path, err)
		case info.IsDir():
			err = f.directory(path, 0)
		case !info.Mode().IsRegular():
			err = fmt.Errorf("%s is neither a file nor a directory", path)
		default:
			err = f.file(path, info)
		}
		if err != nil {
			return found{}, err
		}
	}
	f.found.stamp = f.stamp.String()
	return f.found, nil
}

func reachError(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s does not exist: name a directory of policies, or a file", path)
	}
	return fmt.Errorf("read policies: %w", err)
}

func (f *finder) file(path string, info fs.FileInfo) error {
	if len(f.files) == maxFiles {
		return fmt.Errorf("more than %d files: name a directory that holds policies only", maxFiles)
	}
	f.files = append(f.files, path)
	fmt.Fprintln(&f.stamp, path, info.Size(), info.ModTime().UnixNano())
	if info.ModTime().After(f.newest) {
		f.newest = info.ModTime()
	}
	return nil
}

func (f *finder) directory(path string, depth int) error {
	target, err := filepath.EvalSymlinks(path)
	if err != nil || f.visited[target] || depth > maxDepth || len(f.visited) > maxFiles {
		return err
	}
	f.visited[target] = true
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("read policies: %w", err)
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		if err := f.entry(filepath.Join(path, entry.Name()), depth); err != nil {
			return err
		}
	}
	return nil
}

func (f *finder) entry(path string, depth int) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		// It went away meanwhile, or a link leads nowhere. A link that should be a
		// policy shows up as a file that can't be read.
		if isPolicyFile(path) && (!errors.Is(err, fs.ErrNotExist) || isLink(path)) {
			f.files = append(f.files, path)
			fmt.Fprintln(&f.stamp, path, "unreadable")
		}
		return nil
	case info.IsDir():
		err := f.directory(path, depth+1)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	case isPolicyFile(path) && info.Mode().IsRegular():
		return f.file(path, info)
	}
	return nil
}

func isPolicyFile(path string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(path)))
}

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// read reads the files. Those that went away meanwhile are left out.
func (f found) read() []File {
	var files []File
	for _, path := range f.files {
		file, err := readFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist) && !isLink(path):
		case err != nil:
			files = append(files, File{Name: path, unreadable: reason(err)})
		default:
			files = append(files, file)
		}
	}
	return files
}

func readFile(path string) (File, error) {
	f, err := os.Open(path)
	if err != nil {
		return File{}, err
	}
	defer func() { _ = f.Close() }()
	return ReadStream(path, f)
}

// reason is a file system's error without the path, which stands before it.
func reason(err error) string {
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		err = path.Err
	}
	return "read the file: " + err.Error()
}
