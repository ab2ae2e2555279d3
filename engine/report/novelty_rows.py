"""The novelty of sections as rows with the same columns, for CSV. Plain values; imports no table library."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

NOVELTY_COLUMNS = (
    *("query_id", "rank", "novelty", "status"),
    *("section", "heading", "kind", "start", "end", "page"),
    *("doc_id", "title", "score"),
    *("target_section", "target_heading", "target_page", "contribution", "similarity", "threshold", "words"),
)


def novelty_rows(found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A row for each section, most novel first, with the strongest section pair of its hit.

    Args:
        found: from `Novelty.to_dict`.

    Yields:
        Rows with `NOVELTY_COLUMNS`; None for values that a section does not have.
    """
    for rank, one in enumerate(found["sections"], start=1):
        section, hit = one["section"], one["hit"] or {}
        pair = next((part for part in hit.get("parts", ()) if part["kind"] == "section_pair"), None) or {}
        target = pair.get("target_section") or {}
        yield {
            "query_id": found["query"]["id"],
            "rank": rank,
            "novelty": one["novelty"],
            "status": found["status"],
            "section": section["index"],
            "heading": section["heading"] or None,
            "kind": one["kind"],
            "start": section["start"],
            "end": section["end"],
            "page": section["page"],
            "doc_id": hit.get("id"),
            "title": hit.get("title"),
            "score": hit.get("score"),
            "target_section": target.get("index"),
            "target_heading": target.get("heading") or None,
            "target_page": target.get("page"),
            "contribution": pair.get("contribution"),
            "similarity": pair.get("similarity"),
            "threshold": pair.get("threshold"),
            "words": "; ".join(word["term"] for word in pair.get("words", ())) or None,
        }
