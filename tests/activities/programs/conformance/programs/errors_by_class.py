"""isinstance() of own exceptions with fields is true for their bases alone."""


class ApiError(Exception):
    def __init__(self, message, status=500):
        super().__init__(message)
        self.status = status


class RateLimited(ApiError):
    pass


class NotFound(ApiError):
    pass


async def main() -> list:
    out = []
    for error in (RateLimited("slow down", 429), NotFound("gone", 404)):
        try:
            raise error
        except ApiError as e:
            out.append([type(e).__name__, isinstance(e, RateLimited), isinstance(e, NotFound)])
    return out
