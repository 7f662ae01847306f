// Package scripted promises a model that says what it was told to, for demos and
// for tests of whole programs: the same conversation gets the same answers, with
// no network and no chance in it.
//
// A script is a list of turns. How many answers a conversation already holds says
// which turn is next, so a script keeps no state and serves any number of Runs at
// once. [Parse] reads a script from a file:
//
//	turns:
//	  - text: Let me look.
//	    tool_calls:
//	      - name: shop__find_order
//	        arguments: {number: 7}
//	  - expect: shipped
//	    text: Your order is on its way.
package scripted
