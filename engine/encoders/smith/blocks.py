"""Cuts documents into blocks, and groups blocks to be read together. Reads token counts; no text, no parameters."""

from __future__ import annotations

from collections.abc import Sequence

from engine.encoders.smith.config import Overflow, SmithConfig
from engine.encoders.variant import Variant
from engine.text.segmentation import TokenWindow, fill_windows
from engine.text.spans import Chunk


class BlockFilling:
    """Cuts the sections of one document, given in reading order, into blocks.

    Greedy sentence filling (section 4.1.1 of the paper), but a block never runs
    on into the next section, so that it has one heading. `paper` and `released` stop
    after the first `max_blocks` blocks, MatchBERT after the tokens of the first block.
    """

    def __init__(self, config: SmithConfig) -> None:
        self._config = config
        self._blocks_left = config.max_blocks
        self._tokens_left = config.capacity

    def __call__(self, sentence_ends: Sequence[int]) -> list[TokenWindow]:
        """The blocks of the next section.

        Args:
            sentence_ends: see `fill_windows`.
        """
        config = self._config
        if config.variant is not Variant.FIXED and not config.is_hierarchical:
            n_tokens = min(self._tokens_left, sentence_ends[-1] if sentence_ends else 0)
            self._tokens_left -= n_tokens
            return [TokenWindow(0, n_tokens)] if n_tokens else []
        fill = fill_windows if config.overflow is Overflow.WRAP else fill_truncating
        blocks = fill(sentence_ends, config.capacity)
        if config.variant is not Variant.FIXED:
            blocks = blocks[: self._blocks_left]
            self._blocks_left -= len(blocks)
        return blocks


def fill_truncating(sentence_ends: Sequence[int], capacity: int) -> list[TokenWindow]:
    """Greedy sentence filling as published: a sentence longer than a block is cut off.

    Args:
        sentence_ends: see `fill_windows`.
        capacity: most tokens of a block, at least 1.
    """
    windows: list[TokenWindow] = []
    first = stop = 0
    for end in sentence_ends:
        if end - first > capacity and stop > first:
            windows.append(TokenWindow(first, min(stop, first + capacity)))
            first = stop
        stop = end
    if stop > first:
        windows.append(TokenWindow(first, min(stop, first + capacity)))
    return windows


def document_windows(blocks: Sequence[Chunk], max_blocks: int) -> list[TokenWindow]:
    """Windows of at most `max_blocks` blocks, cut between sections where that is possible.

    Sections fill a window as sentences fill a block; the numbers of a window count blocks.
    """
    n_blocks = len(blocks)
    borders = [at for at in range(1, n_blocks) if blocks[at].section != blocks[at - 1].section]
    return fill_windows([*borders, n_blocks], max_blocks)
