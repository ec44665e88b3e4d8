// An example application: seats of a train, with Sequelize on PostgreSQL.
const { AsyncLocalStorage } = require('node:async_hooks')
const { DataTypes, Sequelize } = require('sequelize')

const places = new AsyncLocalStorage()

function connect(url) {
  const sequelize = new Sequelize(url, { logging: false })
  tagStatements(sequelize)
  const Train = sequelize.define('train', { id: { type: DataTypes.INTEGER, primaryKey: true }, sold: DataTypes.INTEGER },
    { timestamps: false })
  return { sequelize, Train }
}

// sell sells one seat more. Two clerks who sell at the same time may sell the same seat: each writes what it computes from its own read.
function sell({ sequelize, Train }, id) {
  return sequelize.transaction(async (transaction) => {
    const train = await here(() => Train.findByPk(id, { transaction }))
    train.sold += 1
    await here(() => train.save({ transaction }))
  })
}

// sellSafely sells one seat more, and lets the database compute the new value.
function sellSafely({ sequelize, Train }, id) {
  return sequelize.transaction((transaction) => here(() => Train.increment('sold', { where: { id }, transaction })))
}

// here does something, and tells the statements that it sends which line of the application that is.
function here(act) {
  const [, file, line] = /\(?([^ (]+):(\d+):\d+\)?$/.exec(new Error().stack.split('\n')[2])
  return places.run(`code.filepath='${encodeURIComponent(file)}',code.lineno='${line}'`, act)
}

// tagStatements puts that line into a comment (sqlcommenter).
function tagStatements(sequelize) {
  const query = sequelize.dialect.Query.prototype
  const run = query.run
  query.run = function (sql, ...rest) {
    const place = places.getStore()
    return run.call(this, place ? `${sql} /*${place}*/` : sql, ...rest)
  }
}

module.exports = { connect, sell, sellSafely }
