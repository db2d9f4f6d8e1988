// Package diary has the tools with which the model writes the diary of a turn's person and looks into it: remember, recall
// and forget_note.
//
// Whose diary it is, and which of its notes may be told, comes from the turn: its person, and the conversation in which it
// answers. No argument of the model's can name another. What was learned in a direct conversation is told in direct ones
// only; what was learned in a channel is told there and in private.
//
// A note that comes back is data: it is quoted as JSON, so that no delimiter in it can end the place where it stands.
package diary
