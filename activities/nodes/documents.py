"""Which folder of documents a run may use on this worker."""

from dataclasses import dataclass
from pathlib import Path

from activities.toolbox.errors import DocsNotFound


@dataclass(frozen=True, slots=True)
class DocumentRule:
    """`default` serves runs that name no folder; others must lie below `roots`, unless `any_folder` is set."""

    default: Path | None
    roots: tuple[Path, ...]
    any_folder: bool
    worker: str

    def folder(self, asked: str | None) -> Path | None:
        """Return the folder for a run, None when it asks for none and there is none.

        Raises DocsNotFound naming folder and worker when it is not there or not allowed.
        """
        if asked is None:
            return self.default
        path = Path(asked)
        if not path.is_absolute():
            raise DocsNotFound(f"docs folder {asked!r} is not an absolute path (worker {self.worker})")
        if not path.is_dir():
            raise DocsNotFound(f"docs folder {asked} is not there on worker {self.worker}")
        whole = path.resolve()
        if self.default is not None and whole == self.default.resolve():
            return whole
        if not self.any_folder and not any(whole.is_relative_to(root.resolve()) for root in self.roots):
            raise DocsNotFound(f"docs folder {asked} is outside SENNIT_DOCS_ROOTS of worker {self.worker}")
        return whole
