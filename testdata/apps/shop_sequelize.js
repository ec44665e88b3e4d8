// A shop in Sequelize: "setup" makes the schema and its first rows, "traffic" serves requests.
const { DataTypes: T, Op, Sequelize, col, fn, literal, where } = require('sequelize')

const E = process.env
const postgres = E.APP_ENGINE === 'postgres'
const db = new Sequelize(E.APP_DATABASE, E.APP_USER, E.APP_PASSWORD, { dialect: postgres ? 'postgres' : 'mysql', host: E.APP_HOST, port: +E.APP_PORT, logging: E.APP_LOG ? console.log : false })
const unique = n => ({ type: T.STRING(n), allowNull: false, unique: true })
const number = n => ({ type: T.INTEGER, allowNull: false, defaultValue: n })

const Category = db.define('category', { name: unique(100) })
const Tag = db.define('tag', { name: unique(50) })
const Product = db.define('product', { name: T.STRING(100), sku: unique(20), price: T.DECIMAL(10, 2), stock: number(0), active: { type: T.BOOLEAN, defaultValue: true } })
const Customer = db.define('customer', { email: unique(100), city: T.STRING(50), points: number(0) })
const Order = db.define('order', { status: { type: T.STRING(20), defaultValue: 'new' }, total: { type: T.DECIMAL(10, 2), defaultValue: 0 } }, { version: true })
const Item = db.define('item', { quantity: number(1) })
const Coupon = db.define('coupon', { code: unique(20), left: number(0) })
const Review = db.define('review', { stars: number(3) })
const cascade = () => ({ foreignKey: { allowNull: false }, onDelete: 'CASCADE' })
Category.belongsTo(Category, { as: 'parent' })
Category.hasMany(Product, cascade())
Product.belongsTo(Category, cascade())
Product.belongsToMany(Tag, { through: 'product_tag' })
Tag.belongsToMany(Product, { through: 'product_tag' })
Customer.hasMany(Order, cascade())
Order.belongsTo(Customer, cascade())
Order.hasMany(Item, cascade())
Item.belongsTo(Order, cascade())
Item.belongsTo(Product, cascade())
Product.hasMany(Item, cascade())
Review.belongsTo(Product, cascade())
Product.hasMany(Review, cascade())
Review.belongsTo(Customer, { onDelete: 'SET NULL' })

let seed = 7
const random = n => (seed = seed * 48271 % 2147483647) % n

async function setup () {
  await db.sync()
  const root = await Category.create({ name: 'all' })
  const categories = []
  for (let i = 0; i < 5; i++) categories.push(await Category.create({ name: 'category ' + i, parentId: root.id }))
  const tags = []
  for (let i = 0; i < 8; i++) tags.push(await Tag.create({ name: 'tag ' + i }))
  const products = []
  for (let i = 0; i < 40; i++) {
    const p = await Product.create({ name: 'product ' + i, sku: 'S' + i, price: i + 1, stock: 100, categoryId: categories[i % 5].id })
    await p.setTags(tags.slice(i % 4, i % 4 + 3))
    products.push(p)
  }
  for (let i = 0; i < 10; i++) {
    const c = await Customer.create({ email: `user${i}@example.com`, city: 'city ' + i % 3 })
    for (let k = 0; k < 3; k++) {
      const o = await Order.create({ customerId: c.id })
      await Item.create({ orderId: o.id, productId: products[i + k].id })
    }
  }
  await Coupon.create({ code: 'WELCOME', left: 1000 })
}

const product = (o = {}) => Product.findOne({ where: { sku: 'S' + random(40) }, rejectOnEmpty: true, ...o })
const customer = (o = {}) => Customer.findOne({ where: { email: `user${random(10)}@example.com` }, rejectOnEmpty: true, ...o })

const requests = {
  catalogue: () => Product.findAndCountAll({ where: { active: true }, include: Category, order: ['name'], limit: 10, offset: 10 * random(4) }),
  pages: () => Product.findAndCountAll({ include: [Tag, Category], order: ['id'], limit: 10, offset: 10 * random(4), distinct: true }),
  byTag: () => Product.findAll({ include: { model: Tag, where: { name: ['tag 1', 'tag 2'] } }, limit: 5 }),
  search: () => Product.findAll({ where: { [Op.or]: [{ name: { [Op.like]: `%${random(10)}%` } }, { stock: { [Op.gt]: 90 } }] }, limit: 20 }),
  detail: async () => {
    const p = await Product.findByPk((await product()).id, { include: [{ model: Category, include: { model: Category, as: 'parent' } }, Tag, { model: Review, include: Customer }] })
    await Review.findOne({ attributes: [[fn('AVG', col('stars')), 'a'], [fn('COUNT', col('id')), 'n']], where: { productId: p.id }, raw: true })
  },
  tree: async () => {
    await Category.findAll({ attributes: ['name', [fn('COUNT', col('products.id')), 'n']], include: { model: Product, attributes: [] }, group: ['category.id', 'category.name'], raw: true })
    await Category.findAll({ where: { parentId: null } })
  },
  checkout: () => db.transaction(async transaction => {
    const c = await customer({ transaction })
    const order = await Order.create({ customerId: c.id }, { transaction })
    const chosen = await Product.findAll({ where: { sku: [0, 0, 0].map(() => 'S' + random(40)) }, order: ['id'], lock: transaction.LOCK.UPDATE, transaction })
    for (const p of chosen) {
      await Item.create({ orderId: order.id, productId: p.id }, { transaction })
      await p.decrement('stock', { transaction })
      order.total = +order.total + +p.price
    }
    await order.save({ transaction })
    await Coupon.update({ left: literal(postgres ? '"left" - 1' : '`left` - 1') }, { where: { code: 'WELCOME', left: { [Op.gt]: 0 } }, transaction })
    await Customer.increment('points', { where: { id: c.id }, transaction })
  }),
  history: async () => {
    const c = await customer()
    await Order.findAll({ where: { customerId: c.id }, include: { model: Item, include: Product }, order: [['createdAt', 'DESC']], limit: 5 })
    await Order.count({ where: { customerId: c.id } })
    await c.getOrders({ where: { status: 'new' }, limit: 1 })
  },
  pay: async () => {
    const o = await Order.findOne({ where: { status: 'new' }, order: ['createdAt'] })
    if (o) await o.update({ status: 'paid' })
  },
  cancel: async () => {
    const o = await Order.findOne({ where: { status: 'new' }, include: Item, order: [['id', 'DESC']] })
    if (!o) return
    await db.transaction(async transaction => {
      for (const i of o.items) await Product.increment('stock', { where: { id: i.productId }, transaction })
      await o.destroy({ transaction })
    })
  },
  review: async () => {
    const p = await product(); const c = await customer()
    const [r] = await Review.findOrCreate({ where: { productId: p.id, customerId: c.id }, defaults: { stars: 3 } })
    await r.update({ stars: 1 + random(5) })
  },
  tagging: async () => {
    const p = await product()
    await p.setTags(await Tag.findAll({ where: { name: { [Op.like]: `tag ${random(8)}%` } } }))
    await p.countTags()
    await Tag.findOrCreate({ where: { name: 'tag ' + random(12) } })
  },
  bestsellers: () => Item.findAll({ attributes: ['productId', [fn('SUM', col('quantity')), 'n']], group: ['productId'], order: [[literal('n'), 'DESC']], limit: 5, raw: true }),
  revenue: async () => {
    await Order.sum('total', { where: { status: 'paid' } })
    await Order.max('total')
    await Order.findAll({ attributes: ['status', [fn('COUNT', col('id')), 'n']], group: ['status'], having: where(fn('COUNT', col('id')), { [Op.gt]: 0 }), raw: true })
  },
  within: () => Order.findAll({ where: { customerId: { [Op.in]: literal("(SELECT id FROM customers WHERE city = 'city 1')") } } }),
  latest: () => Customer.findAll({ attributes: { include: [[literal(postgres ? '(SELECT COUNT(*) FROM orders o WHERE o."customerId" = customer.id)' : '(SELECT COUNT(*) FROM orders o WHERE o.customerId = customer.id)'), 'n']] } }),
  upsert: () => Coupon.upsert({ code: 'C' + random(5), left: 1 }),
  bulk: async () => {
    await Product.update({ stock: 50 }, { where: { price: { [Op.lt]: 5 } } })
    await Review.bulkCreate([1, 2].map(stars => ({ productId: 1, stars })))
    await Review.destroy({ where: { stars: 2 } })
  },
  reload: async () => {
    const p = await product()
    p.name = p.name + '.'
    p.name = p.name.slice(0, 20)
    await p.save()
    await p.reload()
  },
  signup: async () => {
    const email = `new${random(1e9)}@example.com`
    const [c, made] = await Customer.findOrCreate({ where: { email } })
    if (made) await c.destroy()
  }
}

async function main () {
  if (process.argv[2] === 'setup') await setup()
  else {
    const weights = { catalogue: 2, detail: 2, checkout: 2 }
    for (let i = 0; i < +(E.APP_ROUNDS || 10); i++) {
      for (const [name, request] of Object.entries(requests)) {
        for (let k = 0; k < (weights[name] || 1); k++) await request()
      }
    }
  }
  await db.close()
}

main().catch(e => { console.error(e); process.exit(1) })
