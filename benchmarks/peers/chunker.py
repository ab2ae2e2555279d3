"""Texts cut into chunks of tokens, as peers that read a chunk at a time are given them; no vectors here."""

from __future__ import annotations

from benchmarks.peers.peer import PeerConfig
from engine.encoders.backbone.tokenizer import Tokenizer


class Chunker:
    """Cuts texts into windows of tokens that lie one after another, each full but the last."""

    def __init__(self, config: PeerConfig) -> None:
        """Load the tokenizer of the shared backbone; windows are as long as the run asks, or as the backbone reads."""
        self._tokenizer = Tokenizer(config.backbone)
        self.max_tokens = min(config.window_tokens, config.max_tokens)  # of a chunk, special ones counted

    def cut(self, text: str) -> list[str]:
        """The chunks of a text in their order; what stands between two tokens, as spaces, is in none.

        No word is cut but one that fills a window: its second part would become other tokens
        than it has in the text. A text without a token is one chunk.
        """
        ((_, offsets),) = self._tokenizer.tokenize([text])
        chunks, first = [], 0
        while first < len(offsets):
            stop = self._stop(text, offsets, first)
            chunks.append(text[offsets[first][0] : offsets[stop - 1][1]])
            first = stop
        return chunks or [text]

    def _stop(self, text: str, offsets: list[tuple[int, int]], first: int) -> int:
        """One past the last token of the chunk that begins with token `first`."""
        full = first + self.max_tokens - self._tokenizer.n_special
        stop = full
        while first < stop < len(offsets) and _is_inside_word(text, offsets[stop][0]):
            stop -= 1
        return min(stop if stop > first else full, len(offsets))


def _is_inside_word(text: str, place: int) -> bool:
    return place > 0 and text[place - 1].isalnum() and text[place].isalnum()
