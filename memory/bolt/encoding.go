package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"nudge/memory"
)

const (
	numberSize = 8  // of an id or a journal number in a key
	timeSize   = 12 // of an instant
)

// errShort is the text of the error for a row that ends too early.
var errShort = errors.New("a row is too short")

// checkName refuses what the contract says no store accepts as a name.
func checkName(what, name string) error {
	if name == "" || len(name) > memory.MaxID {
		return fmt.Errorf("%s of %d bytes: %w", what, len(name), memory.ErrBadID)
	}
	return nil
}

// appendName writes a name that something else follows in the key. Zero bytes are written as 00 FF and the end as
// 00 01, so that no name's key begins with another's, and keys sort as names do.
func appendName(key []byte, name string) []byte {
	for i := range len(name) {
		key = append(key, name[i])
		if name[i] == 0 {
			key = append(key, 0xff)
		}
	}
	return append(key, 0, 1)
}

// cutName reads what appendName wrote and returns what follows it.
func cutName(key []byte) (name string, rest []byte, err error) {
	var plain []byte
	for i := 0; i+1 < len(key); i++ {
		if key[i] != 0 {
			plain = append(plain, key[i])
			continue
		}
		i++
		if key[i] == 1 {
			return string(plain), key[i+1:], nil
		}
		plain = append(plain, 0)
	}
	return "", nil, errShort
}

func appendNumber(key []byte, n uint64) []byte {
	return binary.BigEndian.AppendUint64(key, n)
}

func cutNumber(b []byte) (n uint64, rest []byte, err error) {
	if len(b) < numberSize {
		return 0, nil, errShort
	}
	return binary.BigEndian.Uint64(b), b[numberSize:], nil
}

// appendTime writes an instant so that bytes sort as instants do, those before 1970 included: seconds with the
// sign turned round, then nanoseconds.
func appendTime(b []byte, at time.Time) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(at.Unix())^(1<<63))
	return binary.BigEndian.AppendUint32(b, uint32(at.Nanosecond()))
}

func cutTime(b []byte) (at time.Time, rest []byte, err error) {
	if len(b) < timeSize {
		return time.Time{}, nil, errShort
	}
	seconds := int64(binary.BigEndian.Uint64(b) ^ (1 << 63))
	return time.Unix(seconds, int64(binary.BigEndian.Uint32(b[8:]))).UTC(), b[timeSize:], nil
}

// appendText writes a text inside a value: its length, then its bytes.
func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

func cutText(b []byte) (text string, rest []byte, err error) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return "", nil, errShort
	}
	b = b[size:]
	return string(b[:n]), b[n:], nil
}

func cutInt(b []byte) (n int, rest []byte, err error) {
	v, size := binary.Varint(b)
	if size <= 0 {
		return 0, nil, errShort
	}
	return int(v), b[size:], nil
}

// clone copies bytes that bbolt keeps or lends; it never returns nil, which bbolt would take for no value.
func clone(b []byte) []byte {
	return append(make([]byte, 0, len(b)), b...)
}
