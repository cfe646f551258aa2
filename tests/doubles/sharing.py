"""How pytest-xdist shares the suite among processes: file by file, so that what a file starts is started once."""

from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]


class ByFile(LoadScopeScheduling):  # type: ignore[misc]
    """Hands out files in the order of collection, and all browser tests as one: they share a browser and a server."""

    def _split_scope(self, nodeid: str) -> str:
        file = str(nodeid.partition("::")[0])
        return "tests/ui" if file.startswith("tests/ui/") else file
