"""A document cut into chunks of equal length that run across headings, as in the paper. No parameters here."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from engine.encoders.backbone.tokenizer import Tokenizer
from engine.encoders.encoder import SegmentedDocument
from engine.errors import DocumentError
from engine.text.document import Document
from engine.text.spans import Chunk, Coverage


def chunk_across_sections(document: Document, tokenizer: Tokenizer, most: int) -> SegmentedDocument:
    """Cut a document into windows of exactly `most` tokens, the last one shorter.

    Args:
        document: any length.
        tokenizer: of the encoder.
        most: tokens of a window, at least 1.

    Returns:
        Chunks, each of the section in which it begins; every token is in one chunk. A section in
        which no chunk begins has no chunks.

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
