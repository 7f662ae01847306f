// Package eventstream promises that an event stream is read as the WHATWG HTML
// standard says ("Interpreting an event stream") and within bounds, whatever
// bytes a server sends.
//
// Lines end with LF, CR LF or a lone CR; a byte order mark at the very start is
// dropped; comments and unknown fields are skipped; a field without a colon has
// an empty value; an event that the end of the stream cuts off is discarded.
package eventstream
