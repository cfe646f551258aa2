"""Which folder of documents a run may use on this worker."""

from dataclasses import dataclass
from pathlib import Path

from sennit.activities.storage.grants import Grants
from sennit.activities.toolbox.errors import DocsNotFound


@dataclass(frozen=True, slots=True)
class DocumentRule:
    """`default` serves runs that name no folder; others must lie below `roots` or a folder of `grants`."""

    default: Path | None
    roots: tuple[Path, ...]
    grants: Grants
    worker: str

    def folder(self, asked: str | None, *, scheduled: bool = False) -> Path | None:
        """Return the folder for a run, None when it asks for none and there is none. What a person has granted is not
        for runs that are `scheduled`.

        Raises DocsNotFound naming folder and worker when it is not there or not allowed.
        """
        if asked is None:
            return self.default
        path = Path(asked)
        if not path.is_absolute():
            raise DocsNotFound(f"docs folder {asked!r} is not an absolute path (worker {self.worker})")
        whole = path.resolve()
        is_default = self.default is not None and whole == self.default.resolve()
        roots = () if is_default else (*self.roots, *(() if scheduled else self.grants.docs))
        if not is_default and not any(whole.is_relative_to(root.resolve()) for root in roots):
            local = self.grants.path is not None and not scheduled
            way = "; its user opens it with `--docs` of `sennit ask` or `sennit run`" if local else ""
            raise DocsNotFound(f"docs folder {asked} is outside SENNIT_DOCS_ROOTS of worker {self.worker}{way}")
        if not whole.is_dir():
            raise DocsNotFound(f"docs folder {asked} is not there on worker {self.worker}")
        return whole
