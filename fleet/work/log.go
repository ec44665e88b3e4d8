package work

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"

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
	l.at = m.Sequence
	return &Entry{m.Sequence, m.Data}, nil
}

// Put writes the entry of a key, if this process knows all others: otherwise the error is ErrBehind, and what there is to decide is to be decided
// again.
func (l *Log) Put(ctx context.Context, key string, data []byte) error {
	ack, err := l.f.js.Publish(ctx, l.begin+digest(key), data, jetstream.WithExpectLastSequence(l.at))
	if conflict(err) {
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
	_, err := l.f.js.Publish(ctx, l.begin+rand.Text(), data)
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
