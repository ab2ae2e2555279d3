"""The variant of a published model that an encoder follows."""

from __future__ import annotations

from enum import StrEnum


class Variant(StrEnum):
    """The source that an encoder follows where the paper and its authors' code differ or have faults."""

    PAPER = "paper"  # the paper's text
    RELEASED = "released"  # the code that its authors published
    FIXED = "fixed"  # ours, with the faults of both repaired
