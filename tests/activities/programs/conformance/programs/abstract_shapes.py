"""Abstract classes refuse instances without all methods."""
import math
from abc import ABC, abstractmethod


class Shape(ABC):
    @abstractmethod
    def area(self) -> float: ...

    def __str__(self):
        return f"{type(self).__name__} of {self.area():.2f}"


class Circle(Shape):
    def __init__(self, radius):
        self.radius = radius

    def area(self):
        return math.pi * self.radius**2


class Lazy(Shape):
    pass


async def main():
    try:
        Lazy()
    except TypeError as error:
        refused = "abstract" in str(error)
    return [str(Circle(2)), refused, issubclass(Circle, Shape)]
