"""Converts metadata written as text to numbers and booleans, so that filters can compare it."""

from __future__ import annotations

import re


def typed_scalar(raw: str) -> str | int | float | bool:
    """`12` becomes an int, `1.5` a float, `true` a bool, anything else or anything in quotes a string.

    An integer with leading zeros (`007`) or over 16 digits stays a string.
    """
    if len(raw) > 1 and raw[0] == raw[-1] and raw[0] in "\"'":
        return re.sub(r"\\([\"\\])", r"\1", raw[1:-1]) if raw[0] == '"' else raw[1:-1].replace("''", "'")
    if re.fullmatch(r"-?(0|[1-9]\d{0,15})", raw):
        return int(raw)
    if re.fullmatch(r"-?\d{1,15}\.\d{1,15}", raw):
        return float(raw)
    return {"true": True, "false": False}.get(raw.lower(), raw)
