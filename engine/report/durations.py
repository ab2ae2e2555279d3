"""Durations as text."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """A number of seconds as text, such as "2 h 5 min", "3 min 20 s" or "1.5 s"."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
