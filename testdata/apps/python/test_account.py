import os
import threading
import unittest

from account import Account, Base, connect, withdraw, withdraw_safely


class TwoOwners(unittest.TestCase):
    def test_withdraw_at_the_same_time(self):
        sessions = connect(os.environ["DATABASE_URL"])
        with sessions.begin() as session:
            Base.metadata.drop_all(session.connection())
            Base.metadata.create_all(session.connection())
            session.add_all([Account(id=1, balance=100), Account(id=2, balance=100)])
        take = withdraw_safely if os.environ.get("APP_FIXED") else withdraw
        for _ in range(int(os.environ.get("APP_ROUNDS") or 1)):
            with sessions.begin() as session:
                session.query(Account).update({"balance": 100})
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
