// Package filesource turns YAML files into policies, backends, Secrets and
// ConfigMaps, and tells when the files have changed.
//
// It decides which files are read and what is wrong with them; every problem
// names file, line and field. It does not decide what a valid set of objects
// means: references between objects are the reader's to follow.
//
// What always holds:
//
//   - A text means here what it means to kubectl: the same YAML dialect, the same
//     strict decoding, the same validation.
//   - No value of a Secret stands in a problem.
//   - Work and memory are bounded by the size of the files, whatever aliases and
//     nesting they hold.
package filesource
