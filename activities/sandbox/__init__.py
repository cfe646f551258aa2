"""Runs untrusted code: no network, no secrets, one private folder, every resource bounded,
nothing left afterwards.
"""

from typing import Literal

SandboxChoice = Literal["auto", "bwrap", "landlock", "strict", "off"]
