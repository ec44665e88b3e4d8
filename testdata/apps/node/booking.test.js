const assert = require('node:assert')
const test = require('node:test')
const { connect, sell, sellSafely } = require('./booking.js')

test('two clerks sell a seat at the same time', async () => {
  const app = connect(process.env.DATABASE_URL)
  try {
    await app.Train.sync({ force: true })
    await app.Train.create({ id: 1, sold: 0 })
    if (process.env.APP_MEET) meet(app.Train)
    const clerk = process.env.APP_FIXED ? sellSafely : sell
    await Promise.all([clerk(app, 1), clerk(app, 1)])
    assert.strictEqual((await app.Train.findByPk(1)).sold, 2)
  } finally {
    await app.sequelize.close()
  }
})

// meet holds each clerk back, before it saves what it has computed, until the other one saves too. So their transactions overlap, however
// busy the machine is.
function meet(model) {
  const waiting = []
  model.addHook('beforeUpdate', () => new Promise((go) => {
    if (waiting.push(go) === 2) waiting.forEach((go) => go())
  }))
}
