package etcd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"
)

// revisionLength is the first part of a key of etcd's store: the revision, in network order.
const revisionLength = 8

// revision is the newest one in a database of etcd's. Every page is looked at first; what is
// damaged beyond that makes the reader panic, which is an answer, too.
func revision(path string) (newest int64, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("its database cannot be read: %v", r)
		}
	}()
	db, err := bolt.Open(path, 0o400, &bolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return 0, fmt.Errorf("opening its database: %w", err)
	}
	defer db.Close() //nolint:errcheck // only read from
	err = db.View(func(tx *bolt.Tx) error {
		var problems error
		for problem := range tx.Check() {
			problems = errors.Join(problems, problem)
		}
		if problems != nil {
			return fmt.Errorf("its database does not hold together: %w", problems)
		}
		bucket := tx.Bucket([]byte("key"))
		if bucket == nil {
			return errors.New("its database has no keys of etcd's")
		}
		key, _ := bucket.Cursor().Last()
		if key == nil {
			newest = 1 // of a store that nothing was ever written to
			return nil
		}
		if len(key) < revisionLength {
			return errors.New("its database has no revision")
		}
		newest = int64(binary.BigEndian.Uint64(key))
		return nil
	})
	return newest, err //nolint:wrapcheck // says what it found
}
