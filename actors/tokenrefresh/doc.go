// Package tokenrefresh promises that an OAuth grant has one owner, that at most
// one request for a token of it is under way, however many calls wait, and that
// no token is announced before it is stored.
//
// The actor is a child of a connection and owns the grant of the connection's key.
// It never holds a token: the keeper does, beside the sessions that send it, and
// messages carry versions.
//
// # States
//
//	none                 there is no token, and nobody has asked for one
//	acquiring            a flight for the first token, or for more scopes, is under way
//	valid                there is a token
//	refreshing           there was a token; a flight for the next one is under way
//	backing-off          the last flight failed; askers get its reason at once
//	needs-authorization  only a person can go on: the grant never was, or has ended
//
// # Messages in
//
// messages.NeedToken, forwarded by the connection with its asker.
//
// # Messages out
//
// messages.TokenReady to askers; messages.GrantStatus to the connection.
//
// # Flights
//
// One flight is under way at most. All who need a token wait for it, each to its
// own deadline. An asker that has another token than the present one is told at
// once to use that. A flight that fails for now (the authorization server cannot
// be reached, or answers with a page) is tried again a few times for those who
// wait, and then they get the reason.
//
// A token is refreshed ahead of its end, with jitter, if it was used. A token that
// the server refuses is renewed once; when the next one is refused as well without
// ever having been accepted, only a person can help. More scopes are asked for at
// most once for an operation and a set of scopes.
//
// A person is asked only for an asker that waits for an operation's outcome, and
// only where the keeper can reach one. Another consent is another identity: the
// key is stale then, and askers make it anew.
//
// # What is lost on restart
//
// The flight, whose askers are answered. The token is found again where it was
// stored; a flight that was cut off leaves the stored grant as it was, or newer.
package tokenrefresh
