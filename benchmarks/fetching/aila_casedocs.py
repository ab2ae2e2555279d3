"""AILACasedocs of MTEB: situations, and the prior cases of the Supreme Court of India that people judged relevant.

FIRE 2019 AILA, precedent task (Zenodo 4063986, CC BY 4.0). The corpus has the decisions with a positive judgment, as on
the board. It is for evaluation alone: no constant, encoder or variant is chosen on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from benchmarks.fetching.sources import (
    CorpusDocument,
    Files,
    Recipe,
    Recorded,
    corpus_document,
    decoded,
    document_digest,
    github_archive,
)

_REPOSITORY, _COMMIT = (
    "Ananyapam7/AILA-Artificial-Intelligence-for-Legal-Assistance",
    "1c26652c580f55e002c909f2d13dfe9a11d4e1cb",
)
_CASE = re.compile(r"Object_casedocs/(C\d+)\.txt$")
_QUERIES, _JUDGMENTS = "Query_doc.txt", "relevance_judgments_priorcases.txt"
_CHECKSUM, _SOURCE = "89f9c9a5e6cf", "58de26a00a20"


def key(name: str) -> str:
    """The id of a decision, or the name of one of the two other files."""
    case = _CASE.search(name)
    return case[1] if case else next((file for file in (_QUERIES, _JUDGMENTS) if name.endswith(file)), "")


def facts(files: Files) -> Recorded:
    """The judgments, all of which are in the sources; every query is one of test."""
    judged: dict[str, dict[str, list[str]]] = {}
    for line in decoded(files[_JUDGMENTS]).splitlines():
        query_id, _, doc_id, relevance = line.split()
        if relevance != "0":
            judged.setdefault(query_id, {}).setdefault(relevance, []).append(doc_id)
    ids = {doc_id for by_relevance in judged.values() for own in by_relevance.values() for doc_id in own}
    ordered = sorted(ids)
    return Recorded(
        ids=ordered,
        digests=[document_digest(_document(doc_id, files)) for doc_id in ordered],
        judgments={"qrels.tsv": judged},
        splits={"splits.json": {"test": list(judged)}},
        query_ids=list(judged),
        given={},
        checksums={"aila_casedocs": _CHECKSUM},
        source=_SOURCE,
    )


def documents(recorded: Recorded, files: Files) -> Iterator[CorpusDocument]:
    """The decisions."""
    return (_document(doc_id, files) for doc_id in recorded.ids)


def queries(recorded: Recorded, files: Files) -> Iterator[CorpusDocument]:
    """The situations."""
    for line in decoded(files[_QUERIES]).splitlines():
        query_id, _, text = line.partition("||")
        if query_id in recorded.query_ids:
            yield corpus_document(query_id, "", [("", text.strip())], {})


def _document(doc_id: str, files: Files) -> CorpusDocument:
    return corpus_document(doc_id, "", [("", decoded(files[doc_id]))], {})


RECIPE = Recipe(
    name="aila_casedocs",
    sources=(github_archive(_REPOSITORY, _COMMIT),),
    key=key,
    is_text=lambda name: name not in (_QUERIES, _JUDGMENTS),
    documents=documents,
    queries=queries,
    facts=facts,
)
