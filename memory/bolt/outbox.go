package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"

	"nudge/memory"
)

var errNoParcel = errors.New("it is not in the outbox")

// outbox keeps parcels under their id.
type outbox struct{ tx *tx }

func (o outbox) Put(conversation string, data []byte) (id uint64, err error) {
	defer o.tx.guard(o.tx.enter(), &err)
	if err := checkName("conversation", conversation); err != nil {
		return 0, fmt.Errorf("put a parcel: %w", err)
	}
	b, err := o.tx.writing(outboxBucket)
	if err != nil {
		return 0, fmt.Errorf("put a parcel for %q: %w", conversation, err)
	}
	if id, err = b.NextSequence(); err == nil {
		err = b.Put(appendNumber(nil, id), parcelRow(memory.Parcel{Conversation: conversation, Data: data}))
	}
	if err != nil {
		return 0, fmt.Errorf("put a parcel for %q: %w", conversation, err)
	}
	return id, nil
}

func (o outbox) List(after uint64, fn func(memory.Parcel) error) (err error) {
	defer o.tx.guard(o.tx.enter(), &err)
	b, err := o.tx.reading(outboxBucket)
	if err != nil {
		return fmt.Errorf("list parcels: %w", err)
	}
	if after+1 == 0 {
		return nil
	}
	return o.tx.walk(same(b), appendNumber(nil, after+1), false, func(k, v []byte) error {
		p, err := cutParcel(k, v)
		if err != nil {
			return o.tx.damagedBy(err)
		}
		return callRow(o.tx, fn, p)
	})
}

func (o outbox) Last() (id uint64, err error) {
	defer o.tx.guard(o.tx.enter(), &err)
	b, err := o.tx.reading(outboxBucket)
	if err != nil {
		return 0, fmt.Errorf("find the last parcel: %w", err)
	}
	return b.Sequence(), nil
}

func (o outbox) Set(parcel memory.Parcel) (err error) {
	defer o.tx.guard(o.tx.enter(), &err)
	b, err := o.tx.reading(outboxBucket)
	if err != nil {
		return fmt.Errorf("set parcel %d: %w", parcel.ID, err)
	}
	key := appendNumber(nil, parcel.ID)
	value, found := get(b, key)
	if !found {
		return fmt.Errorf("set parcel %d: %w", parcel.ID, errNoParcel)
	}
	now, err := cutParcel(key, value)
	if err != nil {
		return o.tx.damagedBy(err)
	}
	if b, err = o.tx.writing(outboxBucket); err != nil {
		return fmt.Errorf("set parcel %d: %w", parcel.ID, err)
	}
	now.State, now.Tries, now.Receipt = parcel.State, parcel.Tries, parcel.Receipt
	if err := b.Put(key, parcelRow(now)); err != nil {
		return fmt.Errorf("set parcel %d: %w", parcel.ID, err)
	}
	return nil
}

func (o outbox) Remove(ids ...uint64) (err error) {
	defer o.tx.guard(o.tx.enter(), &err)
	b, err := o.tx.writing(outboxBucket)
	if err != nil {
		return fmt.Errorf("remove parcels: %w", err)
	}
	for _, id := range ids {
		if err := b.Delete(appendNumber(nil, id)); err != nil {
			return fmt.Errorf("remove parcel %d: %w", id, err)
		}
	}
	return nil
}

func parcelRow(p memory.Parcel) []byte {
	row := appendText(nil, p.Conversation)
	row = appendText(row, p.State)
	row = binary.AppendVarint(row, int64(p.Tries))
	row = appendText(row, p.Receipt)
	return append(row, p.Data...)
}

// cutParcel makes a parcel of its own bytes from a row.
func cutParcel(k, v []byte) (p memory.Parcel, err error) {
	if p.ID, _, err = cutNumber(k); err != nil {
		return p, err
	}
	if p.Conversation, v, err = cutText(v); err != nil {
		return p, err
	}
	if p.State, v, err = cutText(v); err != nil {
		return p, err
	}
	if p.Tries, v, err = cutInt(v); err != nil {
		return p, err
	}
	if p.Receipt, v, err = cutText(v); err != nil {
		return p, err
	}
	p.Data = clone(v)
	return p, nil
}
