import os
import threading
import unittest

import sqlalchemy

from account import Account, Base, connect, withdraw, withdraw_safely


class TwoOwners(unittest.TestCase):
    def test_withdraw_at_the_same_time(self):
        sessions = connect(os.environ["DATABASE_URL"])
        with sessions.begin() as session:
            Base.metadata.drop_all(session.connection())
            Base.metadata.create_all(session.connection())
            session.add_all([Account(id=1, balance=100), Account(id=2, balance=100)])
        take = withdraw
        if os.environ.get("APP_FIXED"):
            take = withdraw_safely
        elif os.environ.get("APP_MEET"):
            # Each owner waits, before it writes, until the other one writes too. So their transactions overlap, however busy the machine is.
            writing = threading.Barrier(2)
            sqlalchemy.event.listen(sessions, "before_flush", lambda *_: writing.wait())
        taken = []
        owners = [threading.Thread(target=lambda n=n: taken.append(take(sessions, n, 150))) for n in (1, 2)]
        for owner in owners:
            owner.start()
        for owner in owners:
            owner.join()
        self.assertEqual(sorted(taken), [False, True])
        sessions.kw["bind"].dispose()


if __name__ == "__main__":
    unittest.main()
