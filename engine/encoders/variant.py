"""Whose version of a published model an encoder is."""

from __future__ import annotations

from enum import StrEnum


class Variant(StrEnum):
    """What is followed where paper, code and good sense differ."""

    PAPER = "paper"  # the paper's text
    RELEASED = "released"  # the code that its authors published
    FIXED = "fixed"  # ours, with the faults of both mended
