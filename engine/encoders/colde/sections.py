"""How CoLDE cuts a document into chunks, numbers them, and splits it into sections for training. No parameters."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TypeAlias

from engine.encoders.backbone.tokenizer import Tokenizer
from engine.encoders.encoder import SegmentedDocument
from engine.errors import DocumentError
from engine.text.document import Document
from engine.text.spans import Chunk, Coverage

TokenIds: TypeAlias = Sequence[int]


@dataclass(frozen=True, slots=True)
class PlacedChunk:
    """The tokens of a chunk, and the position that its embeddings encode."""

    token_ids: TokenIds  # without special tokens
    section: int  # p, from 0
    chunk: int  # q in its section, from 0


PlacedSection: TypeAlias = tuple[PlacedChunk, ...]


def place(sections: Sequence[Sequence[TokenIds]]) -> tuple[PlacedSection, ...]:
    """Number sections and chunks in the order given.

    Shuffling after this call keeps the original numbers (`ids_follow`: the released code);
    shuffling before it gives the numbers of the new places (`ids_new`).
    """
    return tuple(
        tuple(PlacedChunk(token_ids, p, q) for q, token_ids in enumerate(section)) for p, section in enumerate(sections)
    )


def split_sections(
    sections: Sequence[Sequence[TokenIds]], n_parts: int, chunk_tokens: int, *, refill: bool
) -> list[tuple[TokenIds, ...]]:
    """Join neighbouring sections into parts of near-equal token count; into fewer only if there are fewer tokens.

    Fewer sections than parts are cut into equal stretches of tokens, in chunks of at most `chunk_tokens`.

    Args:
        sections: the chunks of each headed section, none without a token.
        refill: whether the chunks of a part are cut again, full, from its first token.
    """
    if len(sections) < n_parts:
        return _equal_stretches(_tokens(chunk for chunks in sections for chunk in chunks), n_parts, chunk_tokens)
    borders = _balanced([sum(map(len, chunks)) for chunks in sections], n_parts)
    parts = [tuple(chunk for chunks in sections[a:b] for chunk in chunks) for a, b in pairwise(borders)]
    return [full_chunks(_tokens(part), chunk_tokens) for part in parts] if refill else parts


def _tokens(chunks: Iterable[TokenIds]) -> tuple[int, ...]:
    return tuple(token for chunk in chunks for token in chunk)


def full_chunks(tokens: TokenIds, chunk_tokens: int) -> tuple[TokenIds, ...]:
    """Cut tokens into chunks of `chunk_tokens`, the last one shorter."""
    return tuple(tokens[first : first + chunk_tokens] for first in range(0, len(tokens), chunk_tokens))


def _balanced(sizes: Sequence[int], n_parts: int) -> list[int]:
    """Borders of parts of a row of sizes, each as near to its share of the total as those before it allow."""
    ends = [0, *accumulate(sizes)]
    borders = [0]
    for part in range(1, n_parts):
        goal = ends[-1] * part / n_parts
        highest = len(sizes) - (n_parts - part)
        borders.append(min(range(borders[-1] + 1, highest + 1), key=lambda border: abs(ends[border] - goal)))
    return [*borders, len(sizes)]


def _equal_stretches(tokens: Sequence[int], n_parts: int, chunk_tokens: int) -> list[tuple[TokenIds, ...]]:
    n_parts = min(n_parts, len(tokens))
    borders = [len(tokens) * part // n_parts for part in range(n_parts + 1)]
    return [full_chunks(tokens[a:b], chunk_tokens) for a, b in pairwise(borders)]


def chunk_across_sections(document: Document, tokenizer: Tokenizer, most: int) -> SegmentedDocument:
    """Cut a document into windows of exactly `most` tokens, the last one shorter; every token is in one chunk.

    Each chunk is of the section in which it begins. A section in which no chunk begins has no chunks.

    Raises:
        DocumentError: the document has no token.
    """
    tokens: list[tuple[int, int, int, int]] = []  # section, start, stop, id
    for number, (ids, offsets) in enumerate(tokenizer.tokenize(_texts(document))):
        base = document.sections[number].start
        tokens += [(number, base + a, base + b, one) for one, (a, b) in zip(ids, offsets, strict=True)]
    if not tokens:
        raise DocumentError(f"{document.doc_id}: no text that the tokenizer can read")
    windows = [tokens[first : first + most] for first in range(0, len(tokens), most)]
    chunks = tuple(Chunk(window[0][0], window[0][1], window[-1][2], len(window)) for window in windows)
    token_ids = tuple(array("i", [one[3] for one in window]) for window in windows)
    return SegmentedDocument(document, chunks, token_ids, Coverage(len(tokens), len(tokens)))


def tokens_of_sections(document: Document, tokenizer: Tokenizer) -> list[Sequence[int]]:
    """The token ids of each section; empty for a section without text."""
    return [ids for ids, _ in tokenizer.tokenize(_texts(document))]


def _texts(document: Document) -> list[str]:
    return [document.text[section.start : section.stop] for section in document.sections]
