// Package markdown is what adapters share to show a model's Markdown where another markup is spoken, or where messages are
// short. Start with [Parse] and [Text].
//
// Parse reads Markdown that nobody has checked into a tree, in bounded time. An adapter walks over the tree and writes what
// it finds into a Text: words, the markup around them, and the gaps between them. A Text is then one string, or as many
// messages as it takes: [Text.Split] cuts between paragraphs, lines, sentences, words or at least characters, leaves all
// markup that is open at the end of a message, and enters it again in the next. [Table] lays out cells in columns, and
// [Outline] tells what a text holds that is too long to be said.
package markdown
