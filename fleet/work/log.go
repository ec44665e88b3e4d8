package work

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Log is a list that all processes of a fleet read in the same order: the keys of a bucket, in the order in which they were written last.
type Log struct {
	f      *Fleet
	stream jetstream.Stream
	begin  string // of the subjects
	at     uint64 // the last entry that this process knows
}

// Entry is one of a log.
type Entry struct {
	ID   uint64 // the later the larger
	Data []byte
}

// ErrBehind says that the log has entries that this process has not read.
var ErrBehind = errors.New("the fleet has entries that this process has not read")

// logMark stands in the names of the buckets of logs.
const logMark = "_log_"

// OpenLog makes a log, or opens one at its beginning.
func (f *Fleet) OpenLog(ctx context.Context, name string) (*Log, error) {
	bucket := prefix + f.name + logMark + name
	_, err := f.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: bucket})
	if err != nil && !errors.Is(err, jetstream.ErrBucketExists) {
		return nil, err
	}
	s, err := f.js.Stream(ctx, "KV_"+bucket)
	if err != nil {
		return nil, err
	}
	return &Log{f: f, stream: s, begin: "$KV." + bucket + "."}, nil
}

// Next gives the entry behind those that this process knows; nil: there is none. An entry that was written again stands where it was written last.
func (l *Log) Next(ctx context.Context) (*Entry, error) {
	m, err := l.stream.GetMsg(ctx, l.at+1, jetstream.WithGetMsgSubject(l.begin+">"))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	e := &Entry{m.Sequence, m.Data}
	if object := m.Header.Get(objectHeader); object != "" {
		if e.Data, err = l.f.files.GetBytes(ctx, object); err != nil {
			return nil, fmt.Errorf("read entry %d of a log of the fleet: %w", e.ID, err)
		}
	}
	l.at = m.Sequence
	return e, nil
}

// objectHeader names the object that has an entry's data, which are too large for a message.
const objectHeader = "Wirecheck-Object"

// message makes an entry's message. object is where its data are; empty: in the message itself.
func (l *Log) message(ctx context.Context, subject string, data []byte) (m *nats.Msg, object string, err error) {
	m = nats.NewMsg(subject)
	if int64(len(data)) <= l.f.conn.MaxPayload()/2 {
		m.Data = data
		return m, "", nil
	}
	object = "entry-" + rand.Text()
	m.Header.Set(objectHeader, object)
	_, err = l.f.files.PutBytes(ctx, object, data)
	return m, object, err
}

// Put writes the entry of a key, if this process knows all others: otherwise the error is ErrBehind, and what there is to decide is to be decided
// again.
func (l *Log) Put(ctx context.Context, key string, data []byte) error {
	m, object, err := l.message(ctx, l.begin+digest(key), data)
	if err != nil {
		return err
	}
	ack, err := l.f.js.PublishMsg(ctx, m, jetstream.WithExpectLastSequence(l.at))
	if conflict(err) {
		if object != "" {
			err = l.f.files.Delete(ctx, object)
			return errors.Join(ErrBehind, err)
		}
		return ErrBehind
	}
	if err != nil {
		return err
	}
	l.at = ack.Sequence
	return nil
}

// Add writes an entry with a key of its own, whatever there is. This process reads it, too.
func (l *Log) Add(ctx context.Context, data []byte) error {
	m, _, err := l.message(ctx, l.begin+rand.Text(), data)
	if err == nil {
		_, err = l.f.js.PublishMsg(ctx, m)
	}
	return err
}

// PutFiles keeps files under a name that nobody else has.
func (f *Fleet) PutFiles(ctx context.Context, name string, files map[string]string) error {
	text, err := json.Marshal(files)
	if err == nil {
		_, err = f.files.PutBytes(ctx, name, text)
	}
	return err
}

// Files gives what was kept under a name.
func (f *Fleet) Files(ctx context.Context, name string) (files map[string]string, err error) {
	text, err := f.files.GetBytes(ctx, name)
	if err == nil {
		err = json.Unmarshal(text, &files)
	}
	return files, err
}
