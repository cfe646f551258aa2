"""Types of many kinds do nothing at run time."""
from __future__ import annotations

from typing import Any, Callable, ClassVar, Generic, Literal, NamedTuple, Optional, Protocol, TypedDict, TypeVar, Union, cast
from typing import get_type_hints, overload, runtime_checkable

T = TypeVar("T")
Handler = Callable[[str], Optional[int]]


class Stack(Generic[T]):
    limit: ClassVar[int] = 3

    def __init__(self) -> None:
        self.items: list[T] = []

    def push(self, item: T) -> Stack[T]:
        self.items.append(item)
        return self


class Movie(TypedDict, total=False):
    title: str
    year: int


class Place(NamedTuple):
    name: str
    rank: int = 1


@runtime_checkable
class Sized(Protocol):
    def size(self) -> int: ...


class Box:
    def size(self) -> int:
        return 2


@overload
def double(x: int) -> int: ...
@overload
def double(x: str) -> str: ...
def double(x: Union[int, str]) -> Any:
    return x * 2


async def main(mode: Literal["a", "b"] = "a", names: Optional[list[str]] = None) -> dict[str, Any]:
    handler: Handler = lambda text: len(text)
    movie: Movie = {"title": "Up"}
    return {
        "stack": Stack[int]().push(1).push(2).items,
        "movie": movie,
        "place": Place("x")._replace(rank=3),
        "sized": [isinstance(Box(), Sized), isinstance(3, Sized)],
        "double": [double(2), double("ab")],
        "hints": sorted(get_type_hints(Place)),
        "cast": cast(int, "still text"),
        "handler": handler("abc"),
        "mode": mode,
        "names": names,
    }
