"""Finds the documents of an index whose text names a document by one of its identifiers, with the citing sentences.

The identifiers of a document are read from its metadata, its doc_id and its title: numbers of RFCs, PEPs, EIPs and
patents, DOIs, arXiv ids, and places of cases in reporters. Citations by author and year are not found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from engine.errors import QueryError
from engine.index import Index
from engine.text.document import Document, section_label
from engine.text.segmentation import sentence_starts
from engine.text.spans import Span

_DOCUMENTS_AT_ONCE = 200
_SERIES = {"rfc": "RFC", "pep": "PEP", "eip": "(?:EIP|ERC)", "erc": "(?:EIP|ERC)"}
_OF_SERIES = re.compile(r"(?:^|/)(?P<series>rfc|pep|eip|erc)[\s_-]*0*(?P<number>[1-9]\d*)(?!\d)", re.IGNORECASE)
_DOI = re.compile(r"10\.\d{4,9}/\S+")
_ARXIV = re.compile(r"(?<![\d.])(?P<id>\d{4}\.\d{4,5}|[a-z-]+/\d{7})(?:v\d+)?(?![\d.]*\d)")
_PATENT = re.compile(r"(?<![A-Z])(?P<country>US|EP|WO)[\s_-]?(?P<number>\d{6,11})(?:[\s_-]?[A-C]\d?)?(?!\d)")
_CASE = re.compile(r"(?P<volume>\d{1,4})\s+(?P<reporter>[A-Z][\w. ]*?\.?)\s+(?P<page>\d{1,5})")
_CITED = ("citation", "citations", "cite", "cites")  # metadata with the places of a case in reporters
_ARXIV_IDS = ("arxiv", "arxiv_id", "arxivid")
_NUMBERS = ("number", "patent_number", "publication_number")


@dataclass(frozen=True, slots=True)
class Citation:
    """A sentence that names a document."""

    name: str  # as it is written
    section: int
    heading: str
    span: Span  # of the sentence, in the text of the citing document
    text: str


@dataclass(frozen=True, slots=True)
class CitingDocument:
    """A document that names another one, and the sentences that do."""

    document: Document
    citations: tuple[Citation, ...]  # in the order of the text


def cited_by(index: Index, doc_id: str) -> tuple[CitingDocument, ...]:
    """The documents that name a document, those with most citing sentences first; reads all texts of the index.

    Raises:
        QueryError: there is no such document, or nothing in it identifies it.
    """
    document = index.document(doc_id)
    names = dict(identifiers(document))
    if not names:
        raise QueryError(
            f"{doc_id!r} has no identifier: its metadata, name and title hold no number of an RFC, PEP, EIP or patent, "
            "DOI, arXiv id or citation of a case"
        )
    wanted = re.compile("|".join(names.values()))
    citing_documents = []
    for first in range(0, index.n_documents, _DOCUMENTS_AT_ONCE):
        positions = np.arange(first, min(index.n_documents, first + _DOCUMENTS_AT_ONCE))
        for citing, _ in index.snapshot.documents(positions):
            if citing.doc_id != doc_id and (citations := tuple(_citations(citing, wanted))):
                citing_documents.append(CitingDocument(citing, citations))
    return tuple(sorted(citing_documents, key=lambda citing: (-len(citing.citations), citing.document.doc_id)))


def identifiers(document: Document) -> Iterator[tuple[str, str]]:
    """The names of a document, each with a pattern of the ways to write it."""
    values = {
        key.lower(): [str(item) for item in (value if isinstance(value, list | tuple) else [value])]
        for key, value in document.metadata.items()
    }
    stem = document.doc_id.rpartition("/")[2]
    series = [f"{key} {value}" for key in _SERIES for value in values.get(key, ())]
    series += [f"{family} {number}" for family in values.get("family", ()) for number in values.get("number", ())]
    kinds: Sequence[tuple[Sequence[str], re.Pattern[str], Callable[[re.Match[str]], str]]] = (
        ([*series, document.doc_id, document.title], _OF_SERIES, _in_series),
        (_of(values, ("doi",)), _DOI, lambda match: rf"(?i:{re.escape(match[0])})(?![\w/-]|\.\w)"),
        ([*_of(values, _ARXIV_IDS), stem], _ARXIV, _on_arxiv),
        ([*_of(values, _NUMBERS), stem], _PATENT, _patent),
        (_of(values, _CITED), _CASE, _case),
    )
    for texts, pattern, spellings in kinds:
        for match in (match for text in texts for match in pattern.finditer(text)):
            yield match[0], spellings(match)


def _of(values: Mapping[str, list[str]], keys: Sequence[str]) -> list[str]:
    return [value for key in keys for value in values.get(key, ())]


def _in_series(match: re.Match[str]) -> str:
    return rf"(?<!\w)(?i:{_SERIES[match['series'].lower()]})[\s_-]*0*{match['number']}(?![\w]|\.\d)"


def _on_arxiv(match: re.Match[str]) -> str:
    return rf"(?i:arxiv)[:./\s\w]{{0,20}}?{re.escape(match['id'])}(?:v\d+)?(?!\.?\d)"


def _patent(match: re.Match[str]) -> str:
    """A patent number with its country, or with the word patent, and with or without commas."""
    digits = ",?".join(re.findall(r"\d{1,3}(?=(?:\d{3})*$)", match["number"]))
    country = r"U\.?\s?S\.?" if match["country"] == "US" else match["country"]
    words = r"[\s-]*(?:(?i:pat)(?i:ent)?\.?\s*)?(?:(?i:nos?)\.?\s*)?"
    return rf"(?<!\w){country}{words}{digits}(?:[\s-]?[A-C]\d?)?(?!\w)"


def _case(match: re.Match[str]) -> str:
    reporter = r"\.?\s*".join(map(re.escape, re.findall(r"\w+", match["reporter"])))
    return rf"(?<!\d){match['volume']}\s+{reporter}\.?\s+{match['page']}(?!\d)"


def _citations(document: Document, wanted: re.Pattern[str]) -> Iterator[Citation]:
    """The citing sentences, each once."""
    if wanted.search(document.text) is None:
        return
    for number, section in enumerate(document.sections):
        text = document.text[section.start : section.stop]
        if not (matches := list(wanted.finditer(text))):
            continue
        n_heading = len(section.heading) if text.startswith(section.heading) else 0
        starts = sorted({0, *(n_heading + start for start in sentence_starts(text[n_heading:])), len(text)})
        places = np.searchsorted(starts, [match.start() for match in matches], side="right") - 1
        for place in np.unique(places).tolist():
            name = matches[int(np.searchsorted(places, place))][0]
            sentence = text[starts[place] : starts[place + 1]]
            start = section.start + starts[place] + len(sentence) - len(sentence.lstrip())
            span = Span(start, start + len(sentence.strip()))
            yield Citation(name, number, section_label(document, number), span, sentence.strip())
