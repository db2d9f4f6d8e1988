// Package form makes the fields of a form out of a call's arguments and the JSON Schema of its tool, and arguments out of what a
// person has filled in. What the fields look like is the adapter's affair.
//
// A form is made anew from both when it comes back filled in, so that it is understood after a restart; [Stamp] tells whether
// they are what they were. What is in a field that was not touched stays what it was, to the byte.
//
// Start with [Fields] and [Arguments]. Nothing here keeps a state.
package form
