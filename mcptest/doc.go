// Package mcptest promises peers that behave until they are told not to: an MCP
// server, an authorization server, a model endpoint and a bystander, each a real
// program on a loopback socket, and each able to fail on any byte when a test
// commands it.
//
// # The server
//
// [NewServer] starts an MCP tool server of one era: revision 2026-07-28 (the
// default), an older Streamable HTTP revision with sessions ([Legacy]), both at
// one address ([Dual]), or the HTTP+SSE transport of 2024-11-05 ([HTTPSSE]), in
// cleartext or with [TLS] and HTTP/2. It is written on HTTP alone, so that nothing
// corrects its mistakes.
//
// What it does wrong is data. [Server.On] gives a script to requests of one kind,
// and a script is a list of [Behaviour] values:
//
//	server.On("tools/call",
//		mcptest.Status(503, "text/html", "<p>busy").Times(2),
//		mcptest.Execute().Then(mcptest.Reset()).Once(),
//	)
//
// answers two calls with a page, runs the third one and loses its answer, and
// goes on as an ordinary server. A behaviour without Times or Once lasts.
//
// Every request is in [Server.Requests] before it is answered, with its headers
// as they came. [Server.WaitFor] and [Server.WaitStreams] wait for what arrives,
// so that no test has to sleep.
//
// # The authorization server
//
// [NewAuthorizationServer] starts an OAuth 2.1 authorization server: metadata, consent,
// tokens, registration and revocation, as strict as the specifications are. With
// [Protected] an MCP server takes its tokens and no others. An [Authority] and a
// [Protection] say in what they differ from the ordinary, the scripts of
// [Server.On] work on its endpoints as well, and a [Person] consents:
//
//	as := mcptest.NewAuthorizationServer(t, mcptest.Authority{Path: "/tenant"})
//	server := mcptest.NewServer(t, mcptest.Protected(as, mcptest.Protection{}))
//	as.On("refresh_token", mcptest.Status(503, "text/html", "<p>busy").Once())
//
// [AuthorizationServer.Owner] says for whom a token was issued: proof that none was
// sent on another's call.
//
// # The model
//
// [NewModel] starts an endpoint that speaks chat completions as OpenAI does and
// messages as Anthropic does. It plays a list of [ModelAnswer] values, or computes
// them from the request; one answer does for both.
//
// # The bystander
//
// [NewHost] starts a second origin that records whatever reaches it: proof that
// no credential followed a redirect there.
//
// All of them stop at the end of the test and leave no goroutine behind.
package mcptest
