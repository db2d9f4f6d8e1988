// Package diary keeps what is worth remembering of each person, and finds it again by meaning.
//
// A [Note] and what it is found by are rows of the data file, written in the transaction of whoever learned it; nothing
// else keeps them. To find notes, those that one person may be shown in one place are read into an index in memory when
// somebody first asks for them (index.go), and are let go when others need the room (shelf.go). So nothing of one person
// can come up for another, nor anything said in private among others: it is not in the index that is asked.
//
// Ranking fuses two orders: by words (word.go, stem.go, gram.go, rank.go), where a note also has the other words for it
// that the chat model wrote down, and by the nearness of vectors from an [Embedder], for which chromem-go is the index.
// The local embedder needs no network and knows no meaning: then it is the model's other words, at both ends, that bridge
// wordings and languages. A note scores from 0 to 1 besides its rank, and one below the minimum is not found at all.
//
// Start with [Diary.Remember] and [Diary.Recall].
package diary
