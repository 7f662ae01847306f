// Package everything promises a real MCP server written by others: the official
// @modelcontextprotocol/server-everything, pinned by package-lock.json, on
// loopback and gone with the test. It speaks revisions before 2026-07-28.
package everything
