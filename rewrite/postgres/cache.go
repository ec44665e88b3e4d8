package postgres

import (
	"container/list"
	"sync"

	"wirecheck/rewrite"
)

type cacheKey struct {
	sql     string // a text, or a shape
	shape   bool
	catalog *rewrite.Catalog
	facts   string
}

// cache keeps the scripts of the texts and shapes used last, also of those that need nothing.
type cache struct {
	limit int // bytes of text

	mu    sync.Mutex
	size  int
	order *list.List // of *cached, the one used last in front
	byKey map[cacheKey]*list.Element
}

type cached struct {
	key      cacheKey
	template *template
}

// entryCost stands for the plan itself and the cache's own entry.
const entryCost = 1024

func newCache(limit int) *cache {
	return &cache{limit: limit, order: list.New(), byKey: make(map[cacheKey]*list.Element)}
}

func (c *cache) get(k cacheKey) *template {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byKey[k]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*cached).template
}

func (c *cache) put(k cacheKey, t *template) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey[k] != nil {
		return
	}
	c.byKey[k] = c.order.PushFront(&cached{k, t})
	c.size += len(k.sql) + entryCost
	for c.size > c.limit && c.order.Len() > 1 {
		e := c.order.Back()
		old := c.order.Remove(e).(*cached)
		delete(c.byKey, old.key)
		c.size -= len(old.key.sql) + entryCost
	}
}
