"""Dataclasses: defaults, order, frozen ones, post-init, replace, slots."""
from dataclasses import FrozenInstanceError, asdict, astuple, dataclass, field, fields, replace


@dataclass(order=True)
class Task:
    priority: int
    name: str = field(compare=False)
    tags: list[str] = field(default_factory=list, compare=False)

    def __post_init__(self):
        self.name = self.name.strip()


@dataclass(frozen=True, slots=True)
class Point:
    x: float
    y: float = 0.0

    def moved(self, dx):
        return replace(self, x=self.x + dx)


async def main():
    tasks = sorted([Task(3, " c "), Task(1, "a", ["x"]), Task(2, "b")])
    tasks[0].tags.append("y")
    point = Point(1.5)
    try:
        point.x = 2
    except FrozenInstanceError as error:
        said = str(error)
    names = [each.name for each in fields(Task)]
    return [repr(tasks[0]), [asdict(each) for each in tasks], astuple(point.moved(2)), said, names, {point: 1}[Point(1.5)]]
