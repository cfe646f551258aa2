"""Enums, flags, str enums and their methods."""
from enum import Enum, Flag, IntEnum, StrEnum, auto, unique


@unique
class Color(Enum):
    RED = "r"
    GREEN = "g"

    @property
    def label(self):
        return self.name.title()

    @classmethod
    def of(cls, text):
        return next((each for each in cls if each.label == text), cls.RED)


class Rights(Flag):
    READ = auto()
    WRITE = auto()
    ALL = READ | WRITE


class Level(IntEnum):
    LOW = 1
    HIGH = 5


class Kind(StrEnum):
    BUG = auto()
    WISH = auto()


async def main():
    rights = Rights.READ | Rights.WRITE
    return [
        Color.of("Green").value,
        Color("r").name,
        rights is Rights.ALL,
        Rights.READ in rights,
        sorted([Level.HIGH, Level.LOW]),
        Level.HIGH > 3,
        f"{Kind.BUG} {Kind('wish')!r}",
        [each.name for each in Color],
        Color.__members__.keys() == {"RED", "GREEN"},
    ]
