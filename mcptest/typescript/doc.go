// Package typescript promises MCP servers that are built with the official
// TypeScript SDKs: @modelcontextprotocol/sdk, the first line, and
// @modelcontextprotocol/server with @modelcontextprotocol/node, the second. They
// are pinned by package-lock.json, on loopback and gone with the test.
//
// # Tools
//
//	echo {text}   says it again
//	add {a, b}    answers {"sum": …}, as structured content alone
//	fail          fails
//	slow          answers when it is ordered to
//	counter       counts the calls of its session
//	whoami        says what the request's Authorization was
//	grow {name}   adds a tool, and has the change told
//	gone          is there to be taken away
//
// A tool prints "ran NAME" when it runs. What [Start] returns takes the orders
// "add NAME" and "remove NAME", which change the tools and have that told, and
// "release", which lets slow answer; of the modes with sessions also "end", which
// ends the streams of changes in order, and "forget", which forgets the sessions and
// leaves their streams open.
package typescript
