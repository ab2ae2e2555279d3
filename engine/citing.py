"""Finds the documents of an index whose text names a document by one of its identifiers, with the citing sentences.

The identifiers of a document are read from its metadata, its doc_id and its title: numbers of RFCs, PEPs, EIPs and
patents, DOIs, arXiv ids, and places of cases in reporters. Citations by author and year are not found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from engine.errors import QueryError
from engine.index import Index
from engine.references.extraction import citations_of, own_references
from engine.references.identifiers import Kind
from engine.text.document import Document, section_label
from engine.text.segmentation import Span, sentence_starts

_DOCUMENTS_AT_ONCE = 200


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
    names = own_references(document)
    if not names:
        raise QueryError(
            f"{doc_id!r} has no identifier: its metadata, name and title hold no number of an RFC, PEP, EIP or patent, "
            "DOI, arXiv id or citation of a case"
        )
    citing_documents = []
    for first in range(0, index.n_documents, _DOCUMENTS_AT_ONCE):
        positions = np.arange(first, min(index.n_documents, first + _DOCUMENTS_AT_ONCE))
        for citing, _ in index.snapshot.documents(positions):
            if citing.doc_id != doc_id and (citations := tuple(_citations(citing, names))):
                citing_documents.append(CitingDocument(citing, citations))
    return tuple(sorted(citing_documents, key=lambda citing: (-len(citing.citations), citing.document.doc_id)))


def _citations(document: Document, names: Mapping[str, Kind]) -> Iterator[Citation]:
    """The citing sentences, each once."""
    mentions = [reference.span for reference in citations_of(names, document.text)]
    for number, section in enumerate(document.sections if mentions else ()):
        spans = [span for span in mentions if section.start <= span.start < section.stop]
        if not spans:
            continue
        text = document.text[section.start : section.stop]
        n_heading = len(section.heading) if text.startswith(section.heading) else 0
        starts = sorted({0, *(n_heading + start for start in sentence_starts(text[n_heading:])), len(text)})
        places = np.searchsorted(starts, [span.start - section.start for span in spans], side="right") - 1
        for place in np.unique(places).tolist():
            mention = spans[int(np.searchsorted(places, place))]
            sentence = text[starts[place] : starts[place + 1]]
            start = section.start + starts[place] + len(sentence) - len(sentence.lstrip())
            span = Span(start, start + len(sentence.strip()))
            name = document.text[mention.start : mention.stop]
            yield Citation(name, number, section_label(document, number), span, sentence.strip())
