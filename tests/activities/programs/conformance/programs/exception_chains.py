"""Exceptions: chains, notes, else, finally, groups, own classes."""
import traceback


class AppError(Exception):
    def __init__(self, message, *, code=1):
        super().__init__(message)
        self.code = code


class Missing(AppError, LookupError):
    pass


def steps(fail):
    said = []
    try:
        said.append("try")
        if fail:
            raise Missing("gone", code=404)
    except LookupError as error:
        error.add_note("while looking")
        said.append([type(error).__name__, error.code, error.__notes__])
    else:
        said.append("else")
    finally:
        said.append("finally")
    return said


async def main():
    try:
        try:
            int("x")
        except ValueError as error:
            raise AppError("bad input") from error
    except AppError as error:
        chain = [type(error.__cause__).__name__, str(error.__cause__), error.__suppress_context__]
        last = traceback.format_exception_only(error)[-1].strip().rpartition(".")[2]
    caught = []
    try:
        raise ExceptionGroup("many", [ValueError("a"), ExceptionGroup("inner", [KeyError("b"), OSError("c")])])
    except* ValueError as group:
        caught.append(len(group.exceptions))
    except* (KeyError, OSError) as group:
        caught.append(str(group))
    return [steps(True), steps(False), chain, last, caught]
