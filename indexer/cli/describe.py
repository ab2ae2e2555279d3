"""What `info` and `show` print about an index and its documents."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np

from engine.index import Index
from engine.report.table import section_label, simple_table


def describe_index(index: Index, as_json: bool) -> str:
    """Counts, coverage, encoder, generation."""
    facts = _facts(index)
    if as_json:
        return json.dumps(facts)
    encoder, generation = facts["encoder"], facts["generation"]
    rows = [
        ("documents", f"{facts['documents']:,} in {facts['sections']:,} sections and {facts['chunks']:,} chunks"),
        ("coverage", _coverage_line(facts)),
        ("failed", f"{facts['failures']:,}" + (" (see --failures)" if facts["failures"] else "")),
        ("encoder", _encoder_line(encoder)),
        ("vectors", f"{facts['shards']:,} shards, {facts['shard_bytes'] / 1e6:,.1f} MB"),
        ("words", f"language {facts['language']}" if facts["language"] else "none; add them: longmatch repair INDEX"),
        ("reference", _reference_line(facts["reference"])),
        ("generation", _generation_line(generation)),
        ("not covered", f"{facts['fresh_documents']:,} documents, scanned exactly"),
    ]
    return simple_table(rows)


def _coverage_line(facts: dict[str, Any]) -> str:
    read, total, n_missing = facts["tokens_read"], facts["tokens_total"], facts["documents"] - facts["encoded"]
    if n_missing:
        left = f"{n_missing:,} found by words alone, about {total - read:,} tokens to encode"
        return f"{facts['encoded']:,} documents encoded, {left}"
    return f"{'all' if read == total else f'{read / total:.2%} of'} {total:,} tokens read"


def _encoder_line(encoder: dict[str, Any] | None) -> str:
    if encoder is None:
        return "none, the index holds words alone; add vectors: longmatch index INDEX"
    return f"{encoder['name']}, {encoder['width']} wide, fingerprint {encoder['fingerprint'][:12]}"


def _facts(index: Index) -> dict[str, Any]:
    snapshot = index.snapshot
    row = snapshot.generation_row
    generation = None if row is None else dict(row._mapping)
    n_fresh = int(snapshot.is_fresh(row.through_chunk if row is not None else 0).sum())
    return {
        **snapshot.totals(),
        "encoder": snapshot.meta.get("encoder"),
        "language": snapshot.language,
        "reference": None if snapshot.reference_row is None else dict(snapshot.reference_row._mapping),
        "generation": generation,
        "fresh_documents": n_fresh,
        "schema_version": snapshot.meta["schema_version"],
    }


def _reference_line(row: dict[str, Any] | None) -> str:
    if row is None:
        return "none is pinned; one is drawn for each search until an index run ends"
    return f"version {row['version']}, {row['n_documents']:,} documents, drawn from {row['n_corpus']:,}"


def _generation_line(row: dict[str, Any] | None) -> str:
    if row is None:
        return "none; all documents are scanned exactly"
    size = f"{row['n_vectors']:,} vectors, {row['size_bytes'] / 1e6:,.1f} MB"
    if row["is_exact"]:
        return f"{row['factory']}, exact, {size}"
    return (
        f"{row['factory']}, nprobe {row['nprobe']}, {size}; document recall@10 {row['recall']:.3f} "
        f"measured over {row['recall_queries']} queries"
    )


def list_failures(index: Index, as_json: bool) -> str:
    """Sources that could not be indexed, and why."""
    failures = index.snapshot.failures()
    if as_json:
        return json.dumps([{"source": source, "reason": reason} for source, reason in failures])
    return "\n".join(f"{source}: {reason}" for source, reason in failures) or "none"


def list_documents(index: Index, as_json: bool) -> str:
    """Names and titles of all documents."""
    rows = index.snapshot.titles()
    if as_json:
        return json.dumps([{"doc_id": doc_id, "title": title} for doc_id, title in rows], ensure_ascii=False)
    return simple_table(rows)


def describe_document(index: Index, doc_id: str, text: bool, as_json: bool) -> str:
    """One document: sections with offsets, metadata, coverage; its text on request."""
    position = index.position(doc_id)
    ((document, coverage),) = index.snapshot.documents(np.array([position]))
    n_chunks = int(index.snapshot.roster.n_chunks[position])
    if as_json:
        return json.dumps(
            {
                "doc_id": document.doc_id,
                "title": document.title,
                "source": document.source,
                "metadata": dict(document.metadata),
                "tokens_read": coverage.tokens_read,
                "tokens_total": coverage.tokens_total,
                "sections": [{"position": i, **asdict(section)} for i, section in enumerate(document.sections)],
                **({"text": document.text} if text else {}),
            },
            ensure_ascii=False,
        )
    if text:
        return document.text
    rows = [("title", document.title), ("source", document.source)]
    rows += [(key, str(value)) for key, value in document.metadata.items()]
    if n_chunks:
        rows.append(("tokens", f"{coverage.tokens_read:,} of {coverage.tokens_total:,} read"))
        rows.append(("chunks", f"{n_chunks:,}"))
    else:
        rows.append(("tokens", f"about {coverage.tokens_total:,}, not encoded yet"))
    lines = [
        f"{section.start:>9} {section.stop:>9}  {'  ' * max(0, len(section.path) - 1)}{section_label(document, i)}"
        + (f"  [{section.n_merged} joined]" if section.n_merged > 1 else "")
        for i, section in enumerate(document.sections)
    ]
    return "\n".join([simple_table(rows), "", f"{'start':>9} {'stop':>9}  section", *lines])
