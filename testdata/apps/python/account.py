"""An example application: a joint account, with SQLAlchemy on PostgreSQL."""
import sys
import urllib.parse

import sqlalchemy
from sqlalchemy import Column, Integer
from sqlalchemy.orm import declarative_base, sessionmaker

Base = declarative_base()


class Account(Base):
    __tablename__ = "account"
    id = Column(Integer, primary_key=True)
    balance = Column(Integer)


def connect(url):
    engine = sqlalchemy.create_engine(url)

    @sqlalchemy.event.listens_for(engine, "before_cursor_execute", retval=True)
    def tag(conn, cursor, statement, parameters, context, executemany):
        """Says in a comment which line of the application sends a statement (sqlcommenter)."""
        frame = sys._getframe(1)
        while frame and frame.f_code.co_filename != __file__:
            frame = frame.f_back
        if frame:
            # psycopg2 reads % as the beginning of a parameter.
            path = urllib.parse.quote(__file__).replace("%", "%%")
            statement += f" /*code.filepath='{path}',code.lineno='{frame.f_lineno}'*/"
        return statement, parameters

    return sessionmaker(engine)


def withdraw(sessions, number, amount):
    """Withdraws from one account what both together have. Two owners at the same time may overdraw them: neither sees what the other writes."""
    with sessions.begin() as session:
        accounts = {account.id: account for account in session.query(Account)}
        if sum(account.balance for account in accounts.values()) < amount:
            return False
        accounts[number].balance -= amount
        session.flush()
        return True


def withdraw_safely(sessions, number, amount):
    """Withdraws from one account what both together have, and locks both."""
    with sessions.begin() as session:
        accounts = {account.id: account for account in session.query(Account).order_by(Account.id).with_for_update()}
        if sum(account.balance for account in accounts.values()) < amount:
            return False
        accounts[number].balance -= amount
        session.flush()
        return True
