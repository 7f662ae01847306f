package main

import (
	"testing"

	"github.com/psych-systems/psych-go/mcptest/everything"
)

// everythingVariables starts a server that others wrote, over both transports.
func everythingVariables(t *testing.T) []string {
	return []string{
		"EVERYTHING=" + everything.Start(t, everything.StreamableHTTP),
		"EVERYTHING_SSE=" + everything.Start(t, everything.SSE),
	}
}
