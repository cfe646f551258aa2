"""Which folder of documents a run may use on this worker."""

from dataclasses import dataclass
from pathlib import Path

from sennit.activities.storage.grants import Grants
from sennit.activities.toolbox.errors import DocsNotFound


@dataclass(frozen=True, slots=True)
class DocumentRule:
    """`default` serves runs that name no folder; others must lie below `roots`
    or a folder of `grants`.
    """

    default: Path | None
    roots: tuple[Path, ...]
    grants: Grants
    worker: str

    def folder(self, asked: str | None, *, scheduled: bool = False) -> Path | None:
        """Return the folder for a run, None when it asks for none and there is none. What a person
        has granted is not for runs that are `scheduled`.

        Raises DocsNotFound naming folder and worker when it is not there or not allowed.
        """
        if asked is None:
            return self.default
        whole = self._allowed("docs folder", asked, "--docs", scheduled=scheduled)
        if not whole.is_dir():
            raise DocsNotFound(f"docs folder {asked} is not there on worker {self.worker}")
        return whole

    def attached(self, asked: str, *, scheduled: bool = False) -> Path:
        """Return the file or folder of an attachment: the same holds for it as for
        documents. Raises DocsNotFound.
        """
        whole = self._allowed("attached file", asked, "--attach", scheduled=scheduled)
        if not (whole.is_file() or whole.is_dir()):
            raise DocsNotFound(f"attached file {asked} is not there on worker {self.worker}")
        return whole

    def _allowed(self, what: str, asked: str, flag: str, *, scheduled: bool) -> Path:
        path = Path(asked)
        if not path.is_absolute():
            raise DocsNotFound(f"{what} {asked!r} is not an absolute path (worker {self.worker})")
        whole = path.resolve()
        roots = list(self.roots)
        if not scheduled:
            roots += self.grants.docs
        if self.default is not None:
            if whole == self.default.resolve():
                return whole
            if flag == "--attach":
                roots.append(self.default)
        for root in roots:
            if whole.is_relative_to(root.resolve()):
                return whole

        # Only the user of a local stack can grant more.
        way = ""
        if self.grants.path is not None and not scheduled:
            way = f"; its user opens it with `{flag}` of `sennit ask` or `sennit run`"
        raise DocsNotFound(
            f"{what} {asked} is outside SENNIT_DOCS_ROOTS of worker {self.worker}{way}"
        )
