"""Programs that pay bills, and the scripts that edits and forks give them: other ways to pay the same bills.

The new scripts rename the function that pays, put a bill in front, drop one, pay in another order, pass one argument
more, read something else, or pay in `gather` instead of a loop. Each of these once paid twice. A service outside counts
what was really paid.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from random import Random

NODE = "main"
MOST_EDITS, MOST_FORKS = 2, 2
FOREVER = 600.0
"""Seconds that a script waits at its end for an edit, or for the person who ends its run."""
EQUAL = 7
"""The bill that is there more than once: equal payments are as many as the script makes."""
BILLS = (1, 2, 3, EQUAL, EQUAL)
FUNCTIONS = ("settle", "clear", "discharge", "remit")
CALLS = {
    "loop": "[await PAY(bill) for bill in bills]",
    "gather": "await asyncio.gather(*[PAY(bill) for bill in bills])",
    "tasks": "await parallel([task(PAY, bill=bill) for bill in bills])",
    "pool": "await in_pool(bills)",
}
RATES = "rates.md"
"""A file in the folder that workers read and write. Where they may write, reads share a lock with writes."""
SCRIPT = """
import asyncio
from datetime import datetime

async def PAY(billARGUMENT):
    await nap(value=["look at", bill], seconds=0.2)
    account = ACCOUNT
    paid = await pay_bill(text=f"WORD {bill} of SEED", account=account, seconds=0.4 * (bill % 4))
    return paid["text"]

async def worker(bills, paid):
    while not bills.empty():
        paid.append(await PAY(bills.get_nowait()))

async def in_pool(bills):
    queue, paid = asyncio.Queue(), []
    for bill in bills:
        queue.put_nowait(bill)
    await asyncio.gather(worker(queue, paid), worker(queue, paid))
    return paid

async def main():
    bills = BILLS
READ    paid = CALLS
    try:
        await pay_bill(text="reminder of SEED", account="reminders", refusals=1)
        reminded = True
    except Exception:
        reminded = False
    began = datetime.now()
    await asyncio.sleep(END)
    slept = (datetime.now() - began).total_seconds() >= END
    return {"version": VERSION, "paid": sorted(paid), "reminded": reminded, "slept": slept}
"""
READS = {
    "none": "",
    "before": '    await nap(value="read", seconds=0.3)\n',
    "file": '    await read(path="rates.md")\n',
    "beside": '    beside = asyncio.create_task(nap(value="read", seconds=0.5))\n',
}


@dataclass(frozen=True)
class Version:
    """A script that pays bills: what it is made of."""

    seed: int
    account: str
    number: int = 0
    change: str = "first"
    way: str = "loop"
    function: str = FUNCTIONS[0]
    argument: str = ""
    bills: tuple[int, ...] = BILLS
    word: str = "bill"
    read: str = "none"
    waits: bool = False
    repeat_writes: bool = False

    @property
    def script(self) -> str:
        """The script itself."""
        parts = {
            "CALLS": CALLS[self.way],
            "PAY": self.function,
            "ARGUMENT": self.argument,
            "ACCOUNT": self.account,
            "WORD": self.word,
            "BILLS": str(list(self.bills)),
            "READ": READS[self.read],
            "END": str(FOREVER if self.waits else 0.5),
            "VERSION": str(self.number),
            "SEED": str(self.seed),
        }
        script = SCRIPT
        for name, text in parts.items():
            script = script.replace(name, text)
        return script

    @property
    def payments(self) -> Counter[str]:
        """How often it makes each payment, but for the reminder."""
        return Counter(f"{self.word} {bill} of {self.seed}" for bill in self.bills)


def _renamed(version: Version, chance: Random) -> Version:
    names = [name for name in FUNCTIONS if name != version.function]
    return replace(version, function=chance.choice(names))


def _shifted(version: Version, _: Random) -> Version:
    return replace(version, bills=(max(version.bills) + 1, *version.bills))


def _dropped(version: Version, _: Random) -> Version:
    return replace(version, bills=version.bills[1:])


def _reordered(version: Version, chance: Random) -> Version:
    return replace(version, bills=tuple(chance.sample(version.bills, len(version.bills))))


def _one_more(version: Version, _: Random) -> Version:
    return replace(version, bills=(*version.bills, EQUAL))


def _argument(version: Version, _: Random) -> Version:
    return replace(version, argument="" if version.argument else ', why="due"')


def _called(version: Version, chance: Random) -> Version:
    ways = [way for way in CALLS if way != version.way]
    return replace(version, way=chance.choice(ways))


def _reads(version: Version, chance: Random) -> Version:
    reads = [read for read in READS if read != version.read]
    return replace(version, read=chance.choice(reads))


def _other_text(version: Version, _: Random) -> Version:
    return replace(version, word=f"{version.word}.")


def _nothing(version: Version, _: Random) -> Version:
    return version


CHANGES: dict[str, tuple[int, Callable[[Version, Random], Version]]] = {
    "renamed": (3, _renamed),
    "shifted": (3, _shifted),
    "reordered": (3, _reordered),
    "called in another way": (3, _called),
    "another argument": (2, _argument),
    "another read": (2, _reads),
    "dropped": (1, _dropped),
    "one more equal payment": (1, _one_more),
    "another text": (1, _other_text),
    "nothing": (1, _nothing),
}
"""What an edit or a fork may change, with its weight."""


@dataclass(frozen=True)
class Stretch:
    """The versions that one run has: the one it begins with, and its edits. A person ends it by `stop` unless that is
    empty.
    """

    versions: tuple[Version, ...]
    stop: str = ""


@dataclass
class Bills:
    """A run that pays bills, and the forks of it, one after the other."""

    seed: int
    stretches: list[Stretch] = field(default_factory=list)

    @property
    def versions(self) -> list[Version]:
        """All versions, by their number."""
        return [version for stretch in self.stretches for version in stretch.versions]

    @property
    def reminder(self) -> str:
        """The payment that is refused once. The script catches that: it was not made."""
        return f"reminder of {self.seed}"


def bills_of(seed: int) -> Bills:
    """Return the versions of a seed."""
    chance = Random(f"bills {seed}")
    account = chance.choice(('"all"', 'f"account {bill}"'))
    version = Version(seed, account, way=chance.choice(list(CALLS)))
    found = Bills(seed)
    for stretch in range(1 + chance.randint(1, MOST_FORKS)):
        edits = chance.randint(0 if stretch else 1, MOST_EDITS)
        stop = chance.choices(("", "finish", "cancel"), (3, 1, 1))[0]
        versions = list[Version]()
        for number in range(1 + edits):
            if stretch or number:
                version = _changed(version, chance)
            versions.append(replace(version, waits=number < edits or bool(stop)))
            version = replace(version, number=version.number + 1)
        found.stretches.append(Stretch(tuple(versions), stop))
    # The last one goes on to its end, so that all payments must be there then.
    last = found.stretches[-1]
    ending = replace(last.versions[-1], waits=False)
    found.stretches[-1] = Stretch((*last.versions[:-1], ending))
    return found


def _changed(version: Version, chance: Random) -> Version:
    weights = [weight for weight, _ in CHANGES.values()]
    names = chance.choices(list(CHANGES), weights, k=chance.randint(1, 2))
    for name in dict.fromkeys(names):
        version = CHANGES[name][1](version, chance)
    return replace(version, change=" and ".join(dict.fromkeys(names)), repeat_writes=chance.random() < 0.3)


def most_payments(versions: Iterable[Version], reminder: str) -> Counter[str]:
    """Return how often each payment may be made at most: as often as the version that makes it most often."""
    found = Counter({reminder: 1})
    for version in versions:
        found |= version.payments
    return found
