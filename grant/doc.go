// Package grant promises that a token is stored before it is used, is handed out
// under the pool key that it was obtained for and under no other, and goes to no
// authorization server but the one that issued it.
//
// A [Keeper] keeps the OAuth grant of one pool key: it puts the steps of package
// oauth together, resolves the names of credentials, stores what it got and hands
// tokens to the key's requests. When to do what is decided by its owner, the actor
// in actors/tokenrefresh. [Registrations] keeps the clients that were registered
// dynamically, and [Consents] which consent a grant stands on.
//
// # What is stored
//
//	grant/…    tokens with what refreshes them; by pool key and issuer
//	client/…   a registered client; by tenant, issuer and what was registered
//	consent/…  the id of the latest consent; by scope, server and configuration
package grant
