"""Texts of PDFs that are kept on a disk."""

import os
import time
from pathlib import Path

import pytest

from sennit.activities.toolbox.files import pdf
from sennit.activities.toolbox.files.pdf import PdfTexts


def test_what_is_kept_has_a_bound_in_bytes_and_in_days(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf, "MAX_KEPT_PDF_TEXTS_BYTES", 2_500)
    now = time.time()
    for name, days in (("new", 0), ("used", 1), ("older", 2), ("unused", 31)):
        path = tmp_path / f"{name}.json"
        path.write_bytes(bytes(1_000 if name != "unused" else 1))
        os.utime(path, (now - days * 86_400,) * 2)
    PdfTexts(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.json", "used.json"]
