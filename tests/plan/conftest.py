"""Hypothesis in the suite: the same examples every time, no clock; `WEFT_EXAMPLES=n` looks for more."""

import os

from hypothesis import settings

settings.register_profile(
    "weft", deadline=None, derandomize=True, max_examples=int(os.environ.get("WEFT_EXAMPLES", "100"))
)
settings.load_profile("weft")
