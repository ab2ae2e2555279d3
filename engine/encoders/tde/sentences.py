"""Cuts a section into the sentences that TDE reads. Pure functions of token counts; no text, no parameters."""

from __future__ import annotations

from collections.abc import Sequence

from engine.text.segmentation import TokenWindow


def sentence_windows(sentence_ends: Sequence[int], capacity: int, *, shortest: int = 1) -> list[TokenWindow]:
    """One window for each sentence.

    A sentence longer than a window is cut into the fewest pieces that fit, of equal
    size up to one token; the paper does not specify this.

    Args:
        sentence_ends: as for `engine.text.segmentation.fill_windows`.
        capacity: most tokens of a window, at least 1.
        shortest: fewest tokens of a window; a shorter one is joined with the next sentence,
            or at the end with the previous one, where both fit into one window.

    Returns:
        Windows that hold every token once, in order.
    """
    groups: list[TokenWindow] = []
    first = stop = 0
    for end in sentence_ends:
        if stop > first and (stop - first >= shortest or end - first > capacity):
            groups.append(TokenWindow(first, stop))
            first = stop
        stop = end
    if stop > first:
        groups.append(TokenWindow(first, stop))
    if len(groups) > 1 and stop - first < shortest and stop - groups[-2].first <= capacity:
        groups[-2:] = [TokenWindow(groups[-2].first, stop)]
    return [piece for group in groups for piece in _pieces(group, capacity)]


def _pieces(group: TokenWindow, capacity: int) -> list[TokenWindow]:
    size = group.stop - group.first
    n = -(-size // capacity)
    return [TokenWindow(group.first + size * i // n, group.first + size * (i + 1) // n) for i in range(n)]
