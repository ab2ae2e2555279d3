"""Documents read in another order than they are written.

Figure 8 of CoLDE shuffles the sections of test documents. The paper does not state the numbers of the chunks after
this: a chunk can keep its number in the order as written (as in the authors' code), or be numbered by its new place
(as in a document whose sections were moved).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from torch import Tensor

from benchmarks.papers.comparison import Numbers, Order, Unit
from engine.document import Document, Section
from engine.encoders.encoder import SegmentedDocument, Vectors
from engine.encoders.trainable import TrainableEncoder, inference
from engine.errors import TrainingError


def reordered_vector(
    encoder: TrainableEncoder, document: SegmentedDocument, order: Order, rng: np.random.Generator
) -> Vectors:
    """The vector of a document whose sections or chunks were shuffled; never the order as written.

    With `Numbers.ANEW`, sections are moved in the text, which is then cut into chunks like any other text.
    With `Numbers.FOLLOW`, chunks are moved, each with the section in which it begins.

    Args:
        encoder: an encoder of two stages, of which the first numbers chunks, like CoLDE.
        document: the document, segmented by the encoder.
        order: the unit that is moved, and the numbers of chunks.
        rng: equal generators draw equal orders of sections for both kinds of numbers.

    Returns:
        (D,) float32, unit length.

    Raises:
        TrainingError: the document has only one section, or one chunk.
    """
    if order.unit is Unit.CHUNKS:
        places = _shuffled(range(len(document.chunks)), order, document, rng)
        return chunks_moved(encoder, document, places, order.numbers)
    sections = _shuffled(sections_with_text(document.document), order, document, rng)
    if order.numbers is Numbers.ANEW:
        return encoder.encode([sections_moved(document.document, sections)])[0].document
    rank = {number: place for place, number in enumerate(sections)}
    chunks = document.chunks
    places = sorted(range(len(chunks)), key=lambda place: (rank[chunks[place].section], place))
    return chunks_moved(encoder, document, places, Numbers.FOLLOW)


def _shuffled(
    units: Sequence[int], order: Order, document: SegmentedDocument, rng: np.random.Generator
) -> Sequence[int]:
    if len(units) < 2:
        raise TrainingError(
            f"{document.document.doc_id} has {len(units)} {order.unit}, which cannot change places; "
            "read more of each document: --scale max_words=NUMBER"
        )
    shuffled = list(units)
    while shuffled == list(units):
        shuffled = [units[int(place)] for place in rng.permutation(len(units))]
    return shuffled


def sections_with_text(document: Document) -> list[int]:
    """The numbers of the sections that have a word."""
    return [number for number, one in enumerate(document.sections) if document.text[one.start : one.stop].strip()]


def sections_moved(document: Document, numbers: Sequence[int]) -> Document:
    """The document with only these sections, in this order."""
    text, sections = "", list[Section]()
    for number in numbers:
        own = document.sections[number]
        body = document.text[own.start : own.stop]
        sections.append(replace(own, start=len(text), stop=len(text) + len(body)))
        text += body
    return replace(document, text=text, sections=tuple(sections), pages=())


def chunks_moved(
    encoder: TrainableEncoder, document: SegmentedDocument, places: Sequence[int], numbers: Numbers
) -> Vectors:
    """The vector of a document whose chunks are read in another order, given by their places as written."""
    if numbers is Numbers.ANEW:
        moved = SegmentedDocument(
            document.document,
            tuple(document.chunks[place] for place in places),
            tuple(document.token_ids[place] for place in places),
            document.coverage,
        )
        return encoder.encode_segmented([moved])[0].document
    with inference(encoder.module):
        states: Tensor = encoder.states([document])[0]  # (C, H), numbered as written
        vector: Vectors = encoder.combine([document], [states[list(places)]]).documents[0].float().cpu().numpy()
    return vector
