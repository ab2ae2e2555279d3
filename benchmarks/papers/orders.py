"""Documents read in another order than they are written.

Figure 8 of CoLDE shuffles the sections of test documents. Which numbers the chunks have then is not stated: those of
the order as written, which go with them (as in the authors' code), or those of their new places (as in a document whose
sections were moved).
"""

from __future__ import annotations

from itertools import groupby

import numpy as np
from torch import Tensor

from benchmarks.papers.comparison import Numbers, Unit
from engine.encoders.encoder import SegmentedDocument, Vectors
from engine.encoders.trainable import TrainableEncoder, inference


def shuffled_order(document: SegmentedDocument, unit: Unit, rng: np.random.Generator) -> list[int]:
    """The chunks of a document by their places as written, in a random order of units."""
    places = range(len(document.chunks))
    if unit is Unit.CHUNKS:
        return [int(place) for place in rng.permutation(len(places))]
    sections = [list(own) for _, own in groupby(places, key=lambda place: document.chunks[place].section)]
    return [place for number in rng.permutation(len(sections)) for place in sections[number]]


def document_vector(
    encoder: TrainableEncoder, document: SegmentedDocument, order: list[int], numbers: Numbers
) -> Vectors:
    """The vector of a document whose chunks are read in another order.

    Args:
        encoder: of two stages, the first of which numbers chunks, as CoLDE's.
        document: segmented by it.
        order: its chunks by their places as written.
        numbers: those that they have.

    Returns:
        (D,) float32, unit length.
    """
    if numbers is Numbers.ANEW:
        moved = SegmentedDocument(
            document.document,
            tuple(document.chunks[place] for place in order),
            tuple(document.token_ids[place] for place in order),
            document.coverage,
        )
        return encoder.encode_segmented([moved])[0].document
    with inference(encoder.module):
        states: Tensor = encoder.states([document])[0]  # (C, H), numbered as written
        vector: Vectors = encoder.combine([document], [states[order]]).documents[0].float().cpu().numpy()
    return vector
