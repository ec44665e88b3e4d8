package rewrite

import (
	"container/list"
	"sync"
)

// Cache keeps what was made of the texts used last, by their bytes. Many goroutines may use it.
type Cache[K comparable, V any] struct {
	limit int // bytes of text

	mu    sync.Mutex
	size  int
	order *list.List // of *cached, the one used last in front
	byKey map[K]*list.Element
}

type cached[K comparable, V any] struct {
	key   K
	value V
	size  int
}

// cacheEntry stands for the plan itself and the cache's own entry, in bytes.
const cacheEntry = 1024

// NewCache makes a Cache of at most limit bytes.
func NewCache[K comparable, V any](limit int) *Cache[K, V] {
	return &Cache[K, V]{limit: limit, order: list.New(), byKey: make(map[K]*list.Element)}
}

// Get gives what is kept for a key.
func (c *Cache[K, V]) Get(k K) (v V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byKey[k]
	if e == nil {
		return v, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*cached[K, V]).value, true
}

// Put keeps a value for a key, whose text has size bytes, in place of the one that is kept for it.
func (c *Cache[K, V]) Put(k K, v V, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byKey[k]; e != nil {
		e.Value.(*cached[K, V]).value = v
		c.order.MoveToFront(e)
		return
	}
	c.byKey[k] = c.order.PushFront(&cached[K, V]{k, v, size + cacheEntry})
	c.size += size + cacheEntry
	for c.size > c.limit && c.order.Len() > 1 {
		old := c.order.Remove(c.order.Back()).(*cached[K, V])
		delete(c.byKey, old.key)
		c.size -= old.size
	}
}

// Len is the number of what is kept.
func (c *Cache[K, V]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.order.Len()
}
