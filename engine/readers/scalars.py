"""Metadata written as text becomes numbers and truth values where it says so, so that filters can compare it."""

from __future__ import annotations

import re


def typed_scalar(raw: str) -> str | int | float | bool:
    """`12` is an int, `1.5` a float, `true` a bool, anything else or in quotes a text.

    A number that would not be written back the same, as `007`, stays a text.
    """
    if len(raw) > 1 and raw[0] == raw[-1] and raw[0] in "\"'":
        return re.sub(r"\\([\"\\])", r"\1", raw[1:-1]) if raw[0] == '"' else raw[1:-1].replace("''", "'")
    if re.fullmatch(r"-?(0|[1-9]\d{0,15})", raw):
        return int(raw)
    if re.fullmatch(r"-?\d{1,15}\.\d{1,15}", raw):
        return float(raw)
    return {"true": True, "false": False}.get(raw.lower(), raw)
