"""Sizes as people write them: 500M, 2G, 1.5GiB."""

from __future__ import annotations

import re

import click

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def parse_bytes(text: str) -> int:
    """Bytes of a size such as `2G` or `500 MiB`.

    Raises:
        click.BadParameter: the text is not a size.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", text, re.IGNORECASE)
    if match is None or match[2].lower() not in _UNITS:
        raise click.BadParameter(f"{text!r} is not a size; write for example 500M or 2G")
    return int(float(match[1]) * _UNITS[match[2].lower()])
