"""How near the vectors that are stored are to those of the model in float32."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from benchmarks.datasets import read_documents
from benchmarks.encoding.sample import chunk_texts
from benchmarks.encoding.ways import Job, first_chunks
from benchmarks.measuring.thread_limits import limited_threads
from engine.encoders.encoder import SegmentedDocument, Vectors

RIVAL_CHUNKS = 256


@dataclass(frozen=True)
class Fidelity:
    """Cosines of vectors of the same chunks."""

    n_chunks: int
    mean: float  # of ours as an index stores them, to ours in float32
    lowest: float
    rival_chunks: int
    rival_mean: float  # of sentence-transformers' from the chunks' texts, to ours, both in float32
    rival_lowest: float  # below 1 where a text by itself becomes other tokens than inside its document


def measure_fidelity(job: Job, n_chunks: int) -> dict[str, Any]:
    """Encode the first documents of a sample as they are indexed, in float32, and by the rival.

    Args:
        job: of the run.
        n_chunks: at least so many, or all.

    Returns:
        The fields of `Fidelity`.
    """
    import torch

    from benchmarks.peers.shared_weights import sentence_encoder
    from engine.encoders.backbone.model_folder import quiet_transformers
    from engine.encoders.loading import load_encoder
    from engine.search.query import as_stored

    def encoded(segmented: list[SegmentedDocument], dtype: torch.dtype | None) -> Vectors:
        used = load_encoder(job.config.encoder, device="cpu", dtype=dtype)
        return np.concatenate(
            [
                (as_stored(one) if dtype is None else one).chunks
                for document in segmented
                for one in used.encode_segmented([document])
            ]
        )

    with limited_threads(job.config.threads, width=job.config.width):
        encoder = load_encoder(job.config.encoder, device=job.device)
        documents = (encoder.segment(document) for document in read_documents(job.dataset))
        segmented = first_chunks(documents, n_chunks)
        exact = encoded(segmented, torch.float32)
        texts = list(chunk_texts(segmented))[:RIVAL_CHUNKS]
        with quiet_transformers():
            model = sentence_encoder(replace(job.config, dtype="float32"), job.config.max_tokens)
        ours, rival = (
            cosines(encoded(segmented, None), exact),
            cosines(model.encode(texts, show_progress_bar=False), exact[: len(texts)]),
        )
    return asdict(
        Fidelity(len(ours), float(ours.mean()), float(ours.min()), len(rival), float(rival.mean()), float(rival.min()))
    )


def cosines(one: Vectors, other: Vectors) -> Vectors:
    """(N,) cosines of the rows of two arrays (N, D), which need not be of unit length."""
    norms = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    found: Vectors = (one * other).sum(1) / norms
    return found
