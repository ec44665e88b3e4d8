const assert = require('node:assert')
const test = require('node:test')
const { connect, sell, sellSafely } = require('./booking.js')

test('two clerks sell a seat at the same time', async () => {
  const app = connect(process.env.DATABASE_URL)
  try {
    await app.Train.sync({ force: true })
    const clerk = process.env.APP_FIXED ? sellSafely : sell
    for (let round = 1; round <= (process.env.APP_ROUNDS || 1); round++) {
      await app.Train.create({ id: round, sold: 0 })
      await Promise.all([clerk(app, round), clerk(app, round)])
      assert.strictEqual((await app.Train.findByPk(round)).sold, 2)
    }
  } finally {
    await app.sequelize.close()
  }
})
