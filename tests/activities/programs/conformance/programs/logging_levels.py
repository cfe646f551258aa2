"""Logging to the log of the run, with levels, formats and a handler of our own."""
import io
import logging

logger = logging.getLogger("crawler")


class Kept(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(f"{record.levelname}:{record.name}:{record.getMessage()}")


async def main():
    kept = Kept()
    stream = io.StringIO()
    shown = logging.StreamHandler(stream)
    shown.setFormatter(logging.Formatter("%(levelname)-8s %(name)s | %(message)s"))
    logger.addHandler(kept)
    logger.addHandler(shown)
    logger.setLevel(logging.INFO)
    logger.debug("hidden")
    logger.info("found %d of %s", 3, "river")
    child = logging.getLogger("crawler.page")
    child.warning("slow")
    try:
        1 / 0
    except ZeroDivisionError:
        logger.exception("it broke")
    text = stream.getvalue().splitlines()
    return [kept.lines, text[:3], text[-1], child.getEffectiveLevel(), logger.isEnabledFor(10)]
