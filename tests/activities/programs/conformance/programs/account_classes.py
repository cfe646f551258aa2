"""Classes with properties, class methods, operators and inheritance."""


class Account:
    count = 0

    def __init__(self, owner, balance=0):
        self.owner = owner
        self._balance = balance
        type(self).count += 1

    @property
    def balance(self):
        return self._balance

    @balance.setter
    def balance(self, value):
        if value < self.floor():
            raise ValueError(f"{self.owner} cannot have {value}")
        self._balance = value

    @classmethod
    def of(cls, text):
        owner, _, balance = text.partition(":")
        return cls(owner, int(balance))

    @staticmethod
    def floor():
        return 0

    def __add__(self, other):
        return type(self)(f"{self.owner}+{other.owner}", self.balance + other.balance)

    def __lt__(self, other):
        return self.balance < other.balance

    def __repr__(self):
        return f"{type(self).__name__}({self.owner!r}, {self.balance})"


class Credit(Account):
    @staticmethod
    def floor():
        return -100


async def main():
    plain, credit = Account.of("ann:5"), Credit.of("bob:7")
    said = []
    for account in (plain, credit):
        try:
            account.balance -= 50
            said.append("ok")
        except ValueError as error:
            said.append(str(error))
    both = plain + credit
    ranked = [repr(each) for each in sorted([both, plain, credit])]
    return [said, ranked, Account.count, Credit.count, isinstance(credit, Account), Credit.__mro__[1].__name__]
