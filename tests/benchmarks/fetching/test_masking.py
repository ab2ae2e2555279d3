"""Texts of the recorded corpora, masked again from the file of masked citations."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator

import pytest

from benchmarks.datasets import DATA
from benchmarks.fetching.proposals import mask_proposals
from benchmarks.fetching.rfc import mask_rfcs


def unmasked_parts(corpus: str) -> Iterator[tuple[str, list[tuple[str, str, list[str]]]]]:
    """The id of each document and, for each heading or text with citations: recorded, unmasked, the citations."""
    with gzip.open(DATA / corpus / "unmask.jsonl.gz", "rt", encoding="utf-8") as file:
        masked = {line["id"]: line["masked"] for line in map(json.loads, file)}
    with gzip.open(DATA / corpus / "corpus.jsonl.gz", "rt", encoding="utf-8") as file:
        for document in map(json.loads, file):
            parts = []
            for section, (headings, texts) in zip(document["sections"], masked[document["id"]], strict=True):
                parts += [(section[name], cited) for name, cited in (("heading", headings), ("text", texts)) if cited]
            yield document["id"], [(part, _unmasked(part, cited), cited) for part, cited in parts]


def _unmasked(part: str, cited: list[str]) -> str:
    left = iter(cited)
    text = re.sub(r"\[CITE\]", lambda _: next(left), part)
    assert next(left, None) is None
    return text


def mask_rfc(_doc_id: str, text: str, cited: list[str]) -> str:
    return mask_rfcs(text, {citation[1:-1] for citation in cited if citation.startswith("[")})


def mask_proposal(doc_id: str, text: str, _cited: list[str]) -> str:
    return mask_proposals(text, lists=not doc_id.startswith("xep"))


@pytest.mark.slow
@pytest.mark.needs_data
@pytest.mark.parametrize(
    ("corpus", "mask", "n_documents", "most", "equal"),
    [
        ("rfc", mask_rfc, 2600, 60, {"rfc959", "rfc4964", "rfc3512", "rfc6280", "rfc9354"}),
        ("proposals", mask_proposal, 1763, 20, {"pep8", "pep13", "eip1559", "eip2929", "xep106"}),
    ],
)
def test_masking_unmasked_text_gives_the_recorded_corpus(
    corpus: str, mask: Callable[[str, str, list[str]], str], n_documents: int, most: int, equal: set[str]
) -> None:
    documents = list(unmasked_parts(corpus))
    wrong = set()
    for doc_id, parts in documents:
        cited = [citation for _, _, own in parts for citation in own]
        if any(mask(doc_id, original, cited) != recorded for recorded, original, _ in parts):
            wrong.add(doc_id)
    assert len(documents) == n_documents
    assert len(wrong) < most, wrong
    assert not equal & wrong
