"""A state machine with a table of functions."""
from enum import Enum


class State(Enum):
    NEW = "new"
    PAID = "paid"
    SENT = "sent"


class Refused(ValueError):
    pass


NEXT = {(State.NEW, "pay"): State.PAID, (State.PAID, "send"): State.SENT}


class Order:
    def __init__(self):
        self.state, self.log = State.NEW, []
        self._on = {State.SENT: lambda: self.log.append("mail")}

    def do(self, event):
        try:
            self.state = NEXT[self.state, event]
        except KeyError:
            raise Refused(f"no {event} when {self.state.value}") from None
        self._on.get(self.state, lambda: None)()
        return self


async def main():
    order, said = Order(), []
    for event in ("send", "pay", "pay", "send"):
        try:
            said.append(order.do(event).state.name)
        except Refused as error:
            said.append([str(error), error.__cause__ is None])
    return [said, order.log, order.state]
