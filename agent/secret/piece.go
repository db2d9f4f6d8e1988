package secret

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// pieceSize is how many bytes of a secret, anywhere in a text, give it away.
const pieceSize = 12

// longSecret is from where on a secret, such as a file with a chain of keys, is known only as it is.
const longSecret = 4 << 10

// longPart is from how many bytes on a part of an address' path is taken for a secret.
const longPart = 16

type piece [pieceSize]byte

// pieces are known secrets in all their spellings. They are not changed, so that they may be read while others are made.
type pieces struct {
	of     map[piece]struct{}
	begins [1 << 10]uint64     // a bit for each hash of four bytes with which a piece begins
	short  map[string]struct{} // spellings that are shorter than a piece
}

// with gives the same pieces and those of more secrets.
func (p *pieces) with(secrets []string) *pieces {
	more := &pieces{of: maps.Clone(p.of), begins: p.begins, short: maps.Clone(p.short)}
	if more.of == nil {
		more.of, more.short = map[piece]struct{}{}, map[string]struct{}{}
	}
	for _, secret := range secrets {
		secret = strings.TrimSpace(secret)
		for _, part := range secretParts(secret) {
			if len(part) < Shortest {
				continue
			}
			for _, spelling := range spellings(part) {
				more.add(spelling)
			}
		}
	}
	return more
}

func (p *pieces) add(spelling string) {
	if len(spelling) < pieceSize {
		p.short[spelling] = struct{}{}
		return
	}
	for i := range len(spelling) - pieceSize + 1 {
		p.of[piece([]byte(spelling[i:i+pieceSize]))] = struct{}{}
		p.note(spelling[i:])
	}
}

func hash(text string) uint32 {
	return binary.LittleEndian.Uint32([]byte(text[:4])) * 2654435761 >> 16
}

func (p *pieces) note(text string) {
	h := hash(text)
	p.begins[h>>6] |= 1 << (h & 63)
}

// find gives the parts of a text that are pieces of secrets.
func (p *pieces) find(text string) (found []span) {
	for i := 0; len(p.of) > 0 && i+pieceSize <= len(text); i++ {
		h := hash(text[i:])
		if p.begins[h>>6]&(1<<(h&63)) == 0 {
			continue
		}
		if _, known := p.of[piece([]byte(text[i:i+pieceSize]))]; !known {
			continue
		}
		if n := len(found); n > 0 && found[n-1].end >= i {
			found[n-1].end = i + pieceSize
			continue
		}
		found = append(found, span{i, i + pieceSize})
	}
	for short := range p.short {
		for from := 0; ; {
			at := strings.Index(text[from:], short)
			if at < 0 {
				break
			}
			found = append(found, span{from + at, from + at + len(short)})
			from += at + len(short)
		}
	}
	return found
}

// secretParts are what of a secret is secret: of an address its password and the values in its query, or else the long
// parts of its path, since the rest of it stands in other texts too.
func secretParts(secret string) []string {
	address, err := url.Parse(secret)
	if err != nil || address.Scheme == "" || address.Host == "" {
		return []string{secret}
	}
	var parts []string
	if password, set := address.User.Password(); set {
		parts = append(parts, password)
	}
	for _, values := range address.Query() {
		parts = append(parts, values...)
	}
	if len(parts) == 0 {
		for part := range strings.SplitSeq(address.Path, "/") {
			if len(part) >= longPart {
				parts = append(parts, part)
			}
		}
	}
	return parts
}

// spellings are a secret as it is and as other programs may write it.
func spellings(secret string) []string {
	list := []string{secret}
	if quoted, err := json.Marshal(secret); err == nil {
		list = append(list, string(quoted[1:len(quoted)-1]))
	}
	if len(secret) > longSecret {
		return list
	}
	small := hex.EncodeToString([]byte(secret))
	list = append(list, url.QueryEscape(secret), url.PathEscape(secret), small, strings.ToUpper(small))
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 { // where it stands in what is encoded decides how it looks
			list = append(list, encoded(encoding, secret, before))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// encoded is the part of base64 that a secret alone decides, with some bytes before it.
func encoded(encoding *base64.Encoding, secret string, before int) string {
	text := encoding.EncodeToString(append(make([]byte, before), secret...))
	start := (before*8 + 5) / 6
	end := (before + len(secret)) * 8 / 6
	return text[start:end]
}
