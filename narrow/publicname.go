package narrow

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

const (
	// MaxName is how many characters a public name has at most.
	MaxName = 64
	// separator stands between server and tool. No alias holds it, so that no
	// prefix of one server begins another's.
	separator = "__"
	// digits is how many hexadecimal digits tell changed names apart.
	digits = 10
	// serverRoom is how much of a name that is cut the server's part keeps.
	serverRoom = 24
)

// PublicName is the name by which the model knows a server's tool:
// server__tool. It depends on nothing but the two, so that no other server
// renames it. It has at most [MaxName] characters of [A-Za-z0-9_-]; where a
// character had to be replaced or the name cut, a digest of the whole tells it
// from others that look alike then. It is never parsed back.
func PublicName(server, tool string) string {
	name := Prefix(server) + legal(tool)
	if tool != "" && len(name) <= MaxName && legal(server) == server && legal(tool) == tool {
		return name
	}
	suffix := "_" + digest(server, tool)
	if len(name) > MaxName-len(suffix) {
		name = legal(server)[:min(len(server), serverRoom)] + separator + legal(tool)
	}
	return name[:min(len(name), MaxName-len(suffix))] + suffix
}

// Prefix is how the public names of a server's tools begin, unless they are cut.
func Prefix(server string) string { return legal(server) + separator }

// Legal reports whether a name can be public as it is.
func Legal(name string) bool {
	return name != "" && len(name) <= MaxName && legal(name) == name
}

// legal replaces every byte that a public name may not have.
func legal(name string) string {
	return string(mapBytes(name, func(c byte) byte {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-' {
			return c
		}
		return '_'
	}))
}

func mapBytes(text string, replace func(byte) byte) []byte {
	replaced := []byte(text)
	for i, c := range replaced {
		replaced[i] = replace(c)
	}
	return replaced
}

func digest(server, tool string) string {
	sum := sha256.Sum256([]byte(strconv.Itoa(len(server)) + ":" + server + tool))
	return hex.EncodeToString(sum[:])[:digits]
}

// The built-in tools, through which a model reaches deferred servers.
const (
	ListTools   = "list_tools"
	GetToolInfo = "get_tool_info"
	CallTool    = "call_tool"
)

// Reserved reports whether a public name belongs to a built-in tool.
func Reserved(name string) bool {
	return name == ListTools || name == GetToolInfo || name == CallTool
}
