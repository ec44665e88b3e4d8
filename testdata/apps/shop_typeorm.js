// A shop in TypeORM: "setup" makes the schema and its first rows, "traffic" serves requests.
const { DataSource, EntitySchema, In, LessThan, Like, MoreThan } = require('typeorm')

const E = process.env
const postgres = E.APP_ENGINE === 'postgres'
const id = { primary: true, type: 'int', generated: true }
const entity = (name, columns, relations = {}) => new EntitySchema({ name, tableName: name.toLowerCase() + 's', columns: { id, ...columns }, relations })
const one = (target, inverseSide, onDelete = 'CASCADE', nullable = false) => ({ type: 'many-to-one', target, inverseSide, onDelete, nullable })
const many = (target, inverseSide, cascade = false) => ({ type: 'one-to-many', target, inverseSide, cascade })

const Category = entity('Category', { name: { type: 'varchar', length: 100, unique: true } },
  { parent: one('Category', 'children', 'CASCADE', true), children: many('Category', 'parent'), products: many('Product', 'category') })
const Tag = entity('Tag', { name: { type: 'varchar', length: 50, unique: true } })
const Product = entity('Product', {
  name: { type: 'varchar', length: 100 }, sku: { type: 'varchar', length: 20, unique: true }, price: { type: 'decimal', precision: 10, scale: 2 },
  stock: { type: 'int', default: 0 }, active: { type: 'boolean', default: true }, updated: { type: 'timestamp', updateDate: true }
}, {
  category: one('Category', 'products'), tags: { type: 'many-to-many', target: 'Tag', joinTable: true }, reviews: many('Review', 'product')
})
const Customer = entity('Customer', { email: { type: 'varchar', length: 100, unique: true }, city: { type: 'varchar', length: 50, nullable: true }, points: { type: 'int', default: 0 } },
  { orders: many('Order', 'customer') })
const Order = entity('Order', {
  status: { type: 'varchar', length: 20, default: 'new' }, total: { type: 'decimal', precision: 10, scale: 2, default: 0 }, placed: { type: 'timestamp', createDate: true }, version: { type: 'int', version: true }
}, { customer: one('Customer', 'orders'), items: many('Item', 'order', true) })
const Item = entity('Item', { quantity: { type: 'int' } }, { order: one('Order', 'items'), product: one('Product') })
const Coupon = entity('Coupon', { code: { type: 'varchar', length: 20, unique: true }, left: { type: 'int' } })
const Review = entity('Review', { stars: { type: 'int' } }, { product: one('Product', 'reviews'), customer: one('Customer', undefined, 'SET NULL', true) })

const db = new DataSource({
  type: postgres ? 'postgres' : 'mysql', host: E.APP_HOST, port: +E.APP_PORT, username: E.APP_USER, password: E.APP_PASSWORD, database: E.APP_DATABASE,
  entities: [Category, Tag, Product, Customer, Order, Item, Coupon, Review]
})

// A generator of the same numbers each time (Park and Miller).
let seed = 7
const random = n => (seed = seed * 48271 % 2147483647) % n

async function setup () {
  await db.synchronize()
  await db.transaction(async m => {
    const root = await m.save(Category, { name: 'all' })
    const categories = await m.save(Category, [0, 1, 2, 3, 4].map(i => ({ name: 'category ' + i, parent: root })))
    const tags = await m.save(Tag, [0, 1, 2, 3, 4, 5, 6, 7].map(i => ({ name: 'tag ' + i })))
    const products = []
    for (let i = 0; i < 40; i++) {
      products.push(await m.save(Product, { name: 'product ' + i, sku: 'S' + i, price: i + 1, stock: 100, category: categories[i % 5], tags: tags.slice(i % 4, i % 4 + 3) }))
    }
    for (let i = 0; i < 10; i++) {
      const customer = await m.save(Customer, { email: `user${i}@example.com`, city: 'city ' + i % 3 })
      for (let k = 0; k < 3; k++) await m.save(Order, { customer, items: [{ product: products[i + k], quantity: 1 }] })
    }
    await m.save(Coupon, { code: 'WELCOME', left: 1000 })
  })
}

const product = m => m.findOneByOrFail(Product, { sku: 'S' + random(40) })
const customer = m => m.findOneByOrFail(Customer, { email: `user${random(10)}@example.com` })

const requests = {
  catalogue: m => m.findAndCount(Product, { where: { active: true }, relations: { category: true }, order: { name: 'ASC' }, take: 10, skip: 10 * random(4) }),
  pages: m => m.findAndCount(Product, { relations: { tags: true, category: true }, order: { id: 'ASC' }, take: 10, skip: 10 * random(4) }),
  byTag: m => m.find(Product, { where: { tags: { name: In(['tag 1', 'tag 2']) } }, take: 5 }),
  search: m => m.find(Product, { where: [{ name: Like(`%${random(10)}%`) }, { stock: MoreThan(90) }], take: 20 }),
  detail: async m => {
    const p = await m.findOne(Product, { where: { id: (await product(m)).id }, relations: { category: { parent: true }, tags: true, reviews: { customer: true } } })
    await m.createQueryBuilder(Review, 'r').select('AVG(r.stars)', 'a').addSelect('COUNT(*)', 'n').where('r.product = :id', { id: p.id }).getRawOne()
  },
  tree: async m => {
    await m.createQueryBuilder(Category, 'c').leftJoin('c.products', 'p').select('c.name').addSelect('COUNT(p.id)', 'n').groupBy('c.id').addGroupBy('c.name').getRawMany()
    await m.find(Category, { where: { parent: { name: 'all' } } })
  },
  checkout: m => m.transaction(async m => {
    const c = await customer(m)
    const skus = [0, 0, 0].map(() => 'S' + random(40))
    const chosen = await m.createQueryBuilder(Product, 'p').setLock('pessimistic_write').where('p.sku IN (:...skus)', { skus }).orderBy('p.id').getMany()
    const order = await m.save(Order, { customer: c, items: chosen.map(product => ({ product, quantity: 1 })), total: chosen.reduce((n, p) => n + +p.price, 0) })
    for (const p of chosen) p.stock--
    await m.save(Product, chosen)
    await m.createQueryBuilder().update(Coupon).set({ left: () => (postgres ? '"left" - 1' : '`left` - 1') }).where({ code: 'WELCOME', left: MoreThan(0) }).execute()
    await m.increment(Customer, { id: c.id }, 'points', 1)
    order.status = 'placed'
    await m.save(Order, order)
  }),
  history: async m => {
    const c = await customer(m)
    await m.find(Order, { where: { customer: { id: c.id } }, relations: { items: { product: true } }, order: { placed: 'DESC' }, take: 5 })
    await m.count(Order, { where: { customer: { id: c.id } } })
    await m.exists(Order, { where: { customer: { id: c.id }, status: 'new' } })
  },
  pay: async m => {
    const o = await m.findOne(Order, { where: { status: 'new' }, order: { placed: 'ASC' } })
    if (o) { o.status = 'paid'; await m.save(Order, o) }
  },
  cancel: async m => {
    const o = await m.findOne(Order, { where: { status: 'new' }, relations: { items: { product: true } }, order: { id: 'DESC' } })
    if (!o) return
    await m.transaction(async m => {
      for (const i of o.items) await m.increment(Product, { id: i.product.id }, 'stock', i.quantity)
      await m.remove(Order, o)
    })
  },
  review: async m => {
    const p = await product(m); const c = await customer(m)
    const r = await m.findOne(Review, { where: { product: { id: p.id }, customer: { id: c.id } } })
    await m.save(Review, r ? { ...r, stars: 1 + random(5) } : { product: p, customer: c, stars: 3 })
    await m.existsBy(Review, { stars: 5 })
  },
  tagging: async m => {
    const p = await m.findOne(Product, { where: { sku: 'S' + random(40) }, relations: { tags: true } })
    p.tags = await m.find(Tag, { where: { name: Like(`tag ${random(8)}%`) } })
    await m.save(Product, p)
  },
  bestsellers: m => m.createQueryBuilder(Item, 'i').innerJoin('i.product', 'p').select('p.id', 'id').addSelect('SUM(i.quantity)', 'n').groupBy('p.id').orderBy('n', 'DESC').limit(5).getRawMany(),
  revenue: async m => {
    await m.sum(Order, 'total', { status: 'paid' })
    await m.createQueryBuilder(Order, 'o').select('o.status', 's').addSelect('SUM(o.total)', 't').groupBy('o.status').having('COUNT(*) > 0').getRawMany()
  },
  unsold: m => m.createQueryBuilder(Product, 'p').where(q => 'NOT EXISTS ' + q.subQuery().select('1').from(Item, 'i').where('i.product = p.id').getQuery()).getMany(),
  within: m => m.createQueryBuilder(Order, 'o').where(q => 'o.customer IN ' + q.subQuery().select('c.id').from(Customer, 'c').where('c.city = :city').getQuery()).setParameter('city', 'city 1').getMany(),
  upsert: async m => {
    await m.upsert(Coupon, { code: 'C' + random(5), left: 1 }, ['code'])
    await m.createQueryBuilder().insert().into(Tag).values({ name: 'tag 1' }).orIgnore().execute()
  },
  bulk: async m => {
    await m.update(Product, { price: LessThan(5) }, { stock: 50 })
    const p = await product(m)
    await m.insert(Review, [1, 2].map(stars => ({ product: p, stars })))
    await m.delete(Review, { stars: 2 })
  },
  optimistic: m => m.transaction(async m => {
    const o = await m.findOne(Order, { where: { status: 'paid' } })
    if (!o) return
    const same = await m.findOne(Order, { where: { id: o.id }, lock: { mode: 'optimistic', version: o.version } })
    same.total = +same.total + 1
    await m.save(Order, same)
  }),
  signup: async m => {
    const email = `new${random(1e9)}@example.com`
    if (await m.findOneBy(Customer, { email })) return
    const c = await m.save(Customer, { email })
    await m.softDelete(Customer, c.id).catch(() => {})
    await m.remove(Customer, c)
  }
}

async function main () {
  await db.initialize()
  if (process.argv[2] === 'setup') await setup()
  else {
    const weights = { catalogue: 2, detail: 2, checkout: 2 }
    for (let i = 0; i < +(E.APP_ROUNDS || 10); i++) {
      for (const [name, request] of Object.entries(requests)) {
        for (let k = 0; k < (weights[name] || 1); k++) await request(db.manager)
      }
    }
  }
  await db.destroy()
}

main().catch(e => { console.error(e); process.exit(1) })
