"""Cooperative inheritance with super and mixins."""


class Base:
    def steps(self):
        return ["base"]


class Logged(Base):
    def steps(self):
        return ["logged", *super().steps()]


class Timed(Base):
    def steps(self):
        return ["timed", *super().steps()]


class Both(Logged, Timed):
    def steps(self):
        return ["both", *super().steps()]


async def main():
    return [Both().steps(), [kind.__name__ for kind in Both.__mro__]]
