"""Hypothesis in the suite: the same examples every time, no clock; `SENNIT_EXAMPLES=n` looks for more."""

import os

from hypothesis import settings

settings.register_profile(
    "sennit", deadline=None, derandomize=True, max_examples=int(os.environ.get("SENNIT_EXAMPLES", "100"))
)
settings.load_profile("sennit")
