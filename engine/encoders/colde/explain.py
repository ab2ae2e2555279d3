"""CoLDE's explanation of why two documents match: cosines and attention at three levels, as numbers.

Letters in shapes: S and T sections of the query and of the target, C and E their chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from engine.encoders.colde.encoder import ColdeEncoder
from engine.encoders.colde.sections import place
from engine.encoders.encoder import SegmentedDocument, Vectors
from engine.encoders.trainable import inference
from engine.errors import EncoderError
from engine.text.document import Document
from engine.text.spans import Chunk


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """How a query and a target resemble each other, part by part.

    Sections are the headed ones of each document; their headings are in
    `query.sections` and `target.sections`, the text of a chunk is
    `query.text[chunk.start : chunk.stop]`. A section without a token has zeros.
    """

    query: Document
    target: Document
    query_chunks: tuple[Chunk, ...]  # C
    target_chunks: tuple[Chunk, ...]  # E
    similarity: float  # cosine of the two documents
    sections: Vectors  # (S, T) cosines
    query_sections: Vectors  # (S, S) cosines within the query
    target_sections: Vectors  # (T, T) cosines within the target
    chunks: Vectors  # (C, E) cosines
    attention: Vectors  # (C, E) alpha; rows sum to 1
    mutual_attention: Vectors  # (C, E) beta, the mean of alpha and of the attention of the target on the query
    weighted: Vectors  # (C, E) w, attention times cosine
    section_scores: Vectors  # (S, T) in [-1, 1], w summed over the target's chunks, mean over the query's
    most_important: NDArray[np.int64]  # (C,) the target chunk that each query chunk attends to most


def explain(encoder: ColdeEncoder, query: Document, target: Document) -> Explanation:
    """Compare two documents at three levels (section 4.3 of the paper).

    With c the chunk vectors, g the chunk states of the first stage, and the weights
    W_Q, W_K of the trained attention, which are used across documents only here:

        alpha(q, r) = mean over heads of softmax_r( <W_Q g_q, W_K g_r> / sqrt(d_k) )
        beta(q, r) = ( alpha(q, r) + alpha'(r, q) ) / 2,  alpha' that of the target on the query
        w(q, r) = alpha(q, r) <c_q, c_r>
        section(i, j) = mean over q in i of the sum over r in j of w(q, r)

    The paper shows weighted scores and no formula. Ours stays in [-1, 1], and its values
    for the sections j sum to the value for all chunks of the target. Section cosines are those of z, with
    each headed section a section in the sense of `ColdeEncoder.embed_sections`. Where chunks run
    across headings, the weights of a chunk count for the section in which the chunk begins.

    Raises:
        EncoderError: the encoder has no attention.
        DocumentError: a document has no token.
    """
    attention = encoder.layers.attention
    if attention is None:
        raise EncoderError(encoder.cannot_explain)
    one, other = encoder.segment(query), encoder.segment(target)
    with inference(encoder.module):
        states = [own.float() for own in encoder.states([one, other])]
        embedded = encoder.combine([one], states[:1]), encoder.combine([other], states[1:])
        query_sections, target_sections = _section_vectors(encoder, one), _section_vectors(encoder, other)
        alpha = _array(attention.weights(states[0], states[1]))
        back = _array(attention.weights(states[1], states[0]))
        similarity = float(embedded[0].documents[0] @ embedded[1].documents[0])
        chunks = _array(embedded[0].chunks[0]) @ _array(embedded[1].chunks[0]).T
    weighted = alpha * chunks
    return Explanation(
        query=query,
        target=target,
        query_chunks=one.chunks,
        target_chunks=other.chunks,
        similarity=similarity,
        sections=query_sections @ target_sections.T,
        query_sections=query_sections @ query_sections.T,
        target_sections=target_sections @ target_sections.T,
        chunks=chunks,
        attention=alpha,
        mutual_attention=np.float32(0.5) * (alpha + back.T),
        weighted=weighted,
        section_scores=section_scores(weighted, one, other),
        most_important=alpha.argmax(axis=1),
    )


def section_scores(weighted: Vectors, query: SegmentedDocument, target: SegmentedDocument) -> Vectors:
    """Sum w (C, E) over the chunks of each target section, then average over those of each query section: (S, T)."""
    of_target = np.zeros((len(weighted), len(target.document.sections)), np.float32)  # (C, T)
    np.add.at(of_target.T, _sections(target.chunks), weighted.T)
    scores = np.zeros((len(query.document.sections), of_target.shape[1]), np.float32)  # (S, T)
    np.add.at(scores, _sections(query.chunks), of_target)
    counts = np.bincount(_sections(query.chunks), minlength=len(scores)).astype(np.float32)
    return np.asarray(scores / np.maximum(counts, 1)[:, None], np.float32)


def _sections(chunks: Sequence[Chunk]) -> list[int]:
    return [chunk.section for chunk in chunks]


def _section_vectors(encoder: ColdeEncoder, document: SegmentedDocument) -> Vectors:
    """(S, D), unit rows; zero where a section has no token."""
    vectors = np.zeros((len(document.document.sections), encoder.width), np.float32)
    headed = encoder.headed(document)
    vectors[list(headed)] = _array(encoder.embed_sections([place(list(headed.values()))]))
    return vectors


def _array(values: Tensor) -> Vectors:
    array: Vectors = values.float().cpu().numpy()
    return array
