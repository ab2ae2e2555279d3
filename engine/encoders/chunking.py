"""A document cut into chunks of whole sentences, with the token ids that an encoder reads; no parameters here."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Sequence

from engine.encoders.backbone.tokenizer import Tokenizer
from engine.encoders.encoder import SegmentedDocument
from engine.errors import DocumentError
from engine.text.document import Document
from engine.text.segmentation import TokenWindow, fill_windows, sentence_starts
from engine.text.spans import Chunk, Coverage

Windows = Callable[[Sequence[int]], Sequence[TokenWindow]]


def chunk_document(document: Document, tokenizer: Tokenizer, windows: int | Windows) -> SegmentedDocument:
    """Cut each section of a document into windows of tokens; tokens in no window count as not read.

    Args:
        windows: most tokens of a window, filled with whole sentences so that every token is in one window; or a
            function from the sentence ends of a section (counts of tokens, rising) to its windows.

    Raises:
        DocumentError: the document has no token.
    """
    cut: Windows = windows if callable(windows) else (lambda ends: fill_windows(ends, windows))
    texts = [document.text[section.start : section.stop] for section in document.sections]
    chunks: list[Chunk] = []
    token_ids: list[Sequence[int]] = []
    n_tokens = 0
    for number, (ids, offsets) in enumerate(tokenizer.tokenize(texts)):
        n_tokens += len(ids)
        base = document.sections[number].start
        for window in cut(sentence_ends(texts[number], offsets)):
            start, stop = offsets[window.first][0], offsets[window.stop - 1][1]
            chunks.append(Chunk(number, base + start, base + stop, window.stop - window.first))
            token_ids.append(array("i", ids[window.first : window.stop]))  # a tenth of the memory of a tuple
    if not chunks:
        raise DocumentError(f"{document.doc_id}: no text that the tokenizer can read")
    read = sum(chunk.n_tokens for chunk in chunks)
    return SegmentedDocument(document, tuple(chunks), tuple(token_ids), Coverage(read, n_tokens))


def sentence_ends(text: str, offsets: Sequence[tuple[int, int]]) -> list[int]:
    """Count of tokens before the end of each sentence; the last count is that of all tokens."""
    token_starts = [start for start, _ in offsets]
    ends = {bisect_left(token_starts, start) for start in sentence_starts(text)[1:]}
    ends.add(len(token_starts))
    return sorted(ends - {0})
