package spec

import (
	"net/netip"
	"net/url"
	"regexp"
	"strings"

	"github.com/psych-systems/psych-go/document"
)

// scopeToken is RFC 6749 section 3.3.
var scopeToken = regexp.MustCompile(`^[\x21\x23-\x5B\x5D-\x7E]+$`)

func (o OAuth) validate(path string, found *document.Problems) {
	o.validateForm(path, found)
	o.validateClient(path, found)
	for i, scope := range o.Scopes {
		if !scopeToken.MatchString(scope) {
			found.Add(document.Index(path+".scopes", i), "the scope %.80q is not one scope token (RFC 6749 section 3.3)", scope)
		}
	}
	for i, uri := range o.RedirectURIs {
		if !secureURL(uri) {
			found.Add(document.Index(path+".redirect_uris", i), "the redirect URI %.80q must be https, or http to loopback, without user information and fragment", uri)
		}
	}
}

// validateForm checks each field by itself.
func (o OAuth) validateForm(path string, found *document.Problems) {
	switch o.Grant {
	case "", GrantClientCredentials, GrantAuthorizationCode:
	default:
		found.Add(path+".grant", "the grant %.80q is neither client_credentials nor authorization_code", o.Grant)
	}
	switch method := o.method(); {
	case o.TokenEndpointAuthMethod == nil:
	case method == methodClientSecretBasic, method == methodClientSecretPost, method == methodPrivateKeyJWT, method == methodNoneAuthentication:
	default:
		found.Add(path+".token_endpoint_auth_method", "the method %.80q is none of client_secret_basic, client_secret_post, private_key_jwt and none; leave it out to go by the server's metadata", method)
	}
	switch o.ApplicationType {
	case "", applicationNative, applicationWeb:
	default:
		found.Add(path+".application_type", "the application type %.80q is neither native nor web", o.ApplicationType)
	}
	if fault := CredentialFault(o.ClientSecretCredential); o.ClientSecretCredential != "" && fault != "" {
		found.Add(path+".client_secret_credential", "client_secret_credential %s", fault)
	}
	if o.PrivateKeyCredential != nil && CredentialFault(*o.PrivateKeyCredential) != "" {
		found.Add(path+".private_key_credential", "private_key_credential %s", CredentialFault(*o.PrivateKeyCredential))
	}
	if o.Issuer != "" && (!secureURL(o.Issuer) || strings.Contains(o.Issuer, "?")) {
		found.Add(path+".issuer", "the issuer must be an https URL, or http to loopback, without user information, query and fragment (RFC 8414 section 2)")
	}
	if o.CIMDURL != "" && !clientIDURL(o.CIMDURL) {
		found.Add(path+".cimd_url", "cimd_url must be an https URL, or http to loopback, with a path and without user information and fragment")
	}
	if !printable(o.PreregisteredClientID, "") {
		found.Add(path+".preregistered_client_id", "preregistered_client_id must be one line of text")
	}
	if !printable(o.ClientName, "") {
		found.Add(path+".client_name", "client_name must be one line of text")
	}
}

// validateClient checks that the fields together name a client that can
// authenticate itself as it is told to.
func (o OAuth) validateClient(path string, found *document.Problems) {
	var (
		method        = o.method()
		methodPath    = path + ".token_endpoint_auth_method"
		preregistered = o.PreregisteredClientID != ""
		secret        = o.ClientSecretCredential != ""
		key           = o.PrivateKeyCredential != nil
		service       = o.Grant == "" || o.Grant == GrantClientCredentials
		bySecret      = method == methodClientSecretBasic || method == methodClientSecretPost
	)
	switch {
	case preregistered && o.Issuer == "":
		found.Add(path+".preregistered_client_id", "a preregistered client needs the issuer that may see it")
	case !preregistered && secret:
		found.Add(path+".client_secret_credential", "a client secret belongs to a preregistered client; name it in preregistered_client_id")
	case !preregistered && o.CIMDURL == "" && !o.mayRegister():
		found.Add(path, "there is no client: name one in preregistered_client_id or cimd_url, or allow dynamic registration")
	}
	switch {
	case method == methodPrivateKeyJWT && !key:
		found.Add(methodPath, "private_key_jwt needs private_key_credential")
	case method != "" && method != methodPrivateKeyJWT && key:
		found.Add(path+".private_key_credential", "the method %.80s uses no private key", method)
	case bySecret && preregistered && !secret:
		found.Add(methodPath, "%s needs client_secret_credential", method)
	case bySecret && !preregistered && !o.mayRegister():
		found.Add(methodPath, "a client that is known by its cimd_url has no secret")
	case method != "" && !bySecret && secret:
		found.Add(path+".client_secret_credential", "the method %.80s sends no client secret", method)
	case service && method == methodNoneAuthentication:
		found.Add(methodPath, "client_credentials needs a client that authenticates itself, so the method cannot be none")
	case service && preregistered && !secret && !key:
		found.Add(path+".preregistered_client_id", "client_credentials needs client_secret_credential or private_key_credential")
	case service && !preregistered && !key && !o.mayRegister():
		found.Add(path+".cimd_url", "client_credentials with a cimd_url needs private_key_credential")
	}
}

// method is the authentication method, "" to go by metadata.
func (o OAuth) method() string {
	if o.TokenEndpointAuthMethod == nil {
		return ""
	}
	return *o.TokenEndpointAuthMethod
}

// secureURL reports whether a URL is https, or http to loopback, without user
// information and fragment.
func secureURL(raw string) bool {
	parsed, err := url.Parse(raw)
	if err != nil || parsed.Hostname() == "" || parsed.User != nil || strings.Contains(raw, "#") {
		return false
	}
	address, err := netip.ParseAddr(parsed.Hostname())
	loopback := parsed.Hostname() == "localhost" || err == nil && address.IsLoopback()
	return parsed.Scheme == "https" || parsed.Scheme == "http" && loopback
}

// clientIDURL reports whether a URL can be a client's id
// (draft-ietf-oauth-client-id-metadata-document-00, section 3).
func clientIDURL(raw string) bool {
	parsed, err := url.Parse(raw)
	if err != nil || !secureURL(raw) || strings.Trim(parsed.Path, "/") == "" {
		return false
	}
	for segment := range strings.SplitSeq(parsed.Path, "/") {
		if segment == "." || segment == ".." {
			return false
		}
	}
	return true
}
