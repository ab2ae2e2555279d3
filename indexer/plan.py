"""What a run would do and cost, before it starts: documents, tokens, time, disk and memory. Writes nothing."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from engine.document import Document
from engine.encoders.encoder import Encoder, SegmentedDocument
from engine.errors import BudgetExceeded, DocumentError
from engine.readers import Unreadable
from engine.store.ann import AUTO, choose_factory, index_bytes
from engine.store.catalog import CATALOG_FILE
from engine.store.documents import content_hash
from engine.store.snapshot import Snapshot

_SAMPLE_CHARS = 400_000  # segmented, to learn tokens a character
_PROBE_TOKENS = 16_000  # encoded, to learn tokens a second
_TEXT_SHARE = 0.42  # of the characters, deflated and with page overhead


@dataclass
class Plan:
    """Counts are of this run; bytes are of the whole index afterwards, where it says so."""

    n_new: int = 0
    n_changed: int = 0
    n_unchanged: int = 0
    n_unreadable: int = 0
    n_chars: int = 0  # of what must be encoded
    n_tokens: int = 0  # estimated
    n_chunks: int = 0  # estimated, of this run
    n_chunks_after: int = 0  # estimated, of the index
    seconds: float = 0.0  # estimated, encoding
    disk_bytes: int = 0  # estimated, added
    factory: str = AUTO
    ann_bytes: int = 0  # estimated memory of the FAISS index afterwards


def make_plan(
    path: Path,
    documents: Iterable[Document | Unreadable],
    encoder: Encoder,
    *,
    factory: str = AUTO,
    memory_bytes: int | None = None,
) -> Plan:
    """Read a corpus, compare it with the index, and estimate from a sample.

    Raises:
        BudgetExceeded: no FAISS index over so many chunks fits into the memory.
    """
    plan = Plan()
    sample = _compare(plan, path, documents, encoder)
    tokens = sum(segmented.coverage.tokens_total for segmented in sample)
    chars = sum(len(segmented.document.text) for segmented in sample)
    if chars:
        plan.n_tokens = round(plan.n_chars * tokens / chars)
        plan.n_chunks = round(plan.n_chars * sum(len(one.chunks) for one in sample) / chars)
        plan.seconds = plan.n_tokens / _tokens_per_second(sample, encoder)
    plan.n_chunks_after += plan.n_chunks
    plan.disk_bytes = round(plan.n_chunks * (2 * encoder.width * 1.3 + 16) + plan.n_chars * _TEXT_SHARE)
    plan.factory, plan.ann_bytes = fit_factory(factory, plan.n_chunks_after, encoder.width, memory_bytes)
    return plan


def fit_factory(factory: str, n_vectors: int, width: int, memory_bytes: int | None) -> tuple[str, int]:
    """The factory string to use under a memory budget, and the bytes its index will take.

    Raises:
        BudgetExceeded: the factory asked for, or every one that `auto` may take, is larger.
    """
    chosen = choose_factory(n_vectors, width, memory_bytes) if factory == AUTO else factory
    needed = index_bytes(chosen, n_vectors, width)
    if memory_bytes is not None and needed > memory_bytes:
        raise BudgetExceeded(
            f"a {chosen} index over {n_vectors:,} vectors {width} wide takes {needed / 1e6:,.0f} MB, "
            f"--memory allows {memory_bytes / 1e6:,.0f} MB; allow more, or name a smaller --factory, "
            f"for example IVF1024,PQ{max(1, width // 16)}x4fs"
        )
    return chosen, needed


def _compare(
    plan: Plan, path: Path, documents: Iterable[Document | Unreadable], encoder: Encoder
) -> list[SegmentedDocument]:
    """Count what is new, changed and unchanged; segment a sample of what must be encoded."""
    snapshot = Snapshot(path) if (path / CATALOG_FILE).exists() else None
    hashes = snapshot.content_hashes() if snapshot is not None else {}
    sizes = snapshot.chunk_counts() if snapshot is not None else {}
    plan.n_chunks_after = sum(sizes.values())
    sample: list[SegmentedDocument] = []
    n_sampled = 0
    for document in documents:
        if isinstance(document, Unreadable):
            plan.n_unreadable += 1
            continue
        known = hashes.get(document.doc_id)
        if known == content_hash(document):
            plan.n_unchanged += 1
            continue
        plan.n_new += known is None
        plan.n_changed += known is not None
        plan.n_chunks_after -= sizes.get(document.doc_id, 0)
        plan.n_chars += len(document.text)
        if n_sampled < _SAMPLE_CHARS:
            n_sampled += len(document.text)
            sample += _segmented(document, encoder, plan)
    if snapshot is not None:
        snapshot.close()
    return sample


def _segmented(document: Document, encoder: Encoder, plan: Plan) -> list[SegmentedDocument]:
    try:
        return [encoder.segment(document)]
    except DocumentError:
        plan.n_unreadable += 1
        return []


def _tokens_per_second(sample: list[SegmentedDocument], encoder: Encoder) -> float:
    """Encode some of the sample after a first document to warm up, and time it."""
    encoder.encode_segmented(sample[:1])
    started = time.perf_counter()
    n_tokens = 0
    for segmented in sample:
        encoder.encode_segmented([segmented])
        n_tokens += segmented.coverage.tokens_read
        if n_tokens >= _PROBE_TOKENS:
            break
    return n_tokens / max(time.perf_counter() - started, 1e-9)
