package document

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// root is the path of a document itself.
const root = "$"

// simpleKey is a key that a path holds as it is.
var simpleKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// Join is the path of what stands under a key: path.key, or path["key"] for a
// key that has other characters than letters, digits, "_" and "-".
func Join(path, key string) string {
	if simpleKey.MatchString(key) {
		return path + "." + key
	}
	return path + "[" + strconv.Quote(key) + "]"
}

// Index is the path of a list's element, counted from 0.
func Index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// steps splits $.a[0]["b.c"] into a, 0, b.c.
func steps(path string) []string {
	var all []string
	rest := strings.TrimPrefix(path, root)
	for rest != "" {
		if quoted, err := strconv.QuotedPrefix(strings.TrimPrefix(rest, "[")); err == nil && rest[0] == '[' {
			key, _ := strconv.Unquote(quoted)
			all = append(all, key)
			rest = strings.TrimPrefix(rest[1+len(quoted):], "]")
			continue
		}
		rest = strings.TrimLeft(rest, ".[]")
		end := strings.IndexAny(rest, ".[]")
		if end < 0 {
			end = len(rest)
		}
		if end > 0 {
			all = append(all, rest[:end])
		}
		rest = rest[end:]
	}
	return all
}

// named is a path in the words of a sentence.
func named(path string) string {
	if path == root {
		return "the document"
	}
	return strings.TrimPrefix(strings.TrimPrefix(path, root), ".")
}
