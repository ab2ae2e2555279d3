"""Finds the documents of an index whose text names a document by one of its identifiers, with the citing sentences.

The identifiers of a document are read from its metadata, its doc_id and its title: numbers of RFCs, PEPs, EIPs and
patents, DOIs, arXiv ids, and places of cases in reporters. Citations by author and year are not found.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from engine.errors import QueryError
from engine.index import Index
from engine.references.extraction import citations_of, own_references, references
from engine.references.identifiers import Mention
from engine.text.document import Document, Unreadable, section_label
from engine.text.segmentation import Section, Span, sentence_starts

_DOCUMENTS_AT_ONCE = 200
CITING_TEXT = "Cited by"  # heading of the section that holds the citing sentences


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
    """The documents that name a document, those with most citing sentences first; reads all texts of the index."""
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
            if citing.doc_id != doc_id and (found := citations_of(names, citing.text)):
                mentions = [reference.span for reference in found]
                citing_documents.append(CitingDocument(citing, tuple(_citations(citing, mentions))))
    return tuple(sorted(citing_documents, key=lambda citing: (-len(citing.citations), citing.document.doc_id)))


def with_citing_text(documents: Iterable[Document | Unreadable]) -> Iterator[Document | Unreadable]:
    """The documents, each with the sentences of the others that name it as its last section; all are held in memory.

    The names of works are left out of these sentences, so that no document cites what only another one cites.
    """
    held = list(documents)
    readable = [document for document in held if isinstance(document, Document)]
    owners: defaultdict[str, list[str]] = defaultdict(list)
    for document in readable:
        for name in own_references(document):
            owners[name].append(document.doc_id)
    sentences: defaultdict[str, dict[str, None]] = defaultdict(dict)  # in order, each once
    for document in readable if owners else ():
        found = references(document.text)
        mentions: defaultdict[str, list[Span]] = defaultdict(list)
        for reference in found:
            for cited in owners.get(reference.name, ()):
                mentions[cited].append(reference.span)
        for cited in mentions.keys() - {document.doc_id}:
            for citation in _citations(document, mentions[cited]):
                sentences[cited][_without_names(document.text, citation.span, found)] = None
    for one in held:
        is_cited = one.doc_id in sentences
        yield _extended(one, sentences[one.doc_id]) if is_cited and isinstance(one, Document) else one


def _without_names(text: str, sentence: Span, found: Sequence[Mention]) -> str:
    parts, place = list[str](), sentence.start
    for reference in found:
        if place <= reference.span.start and reference.span.stop <= sentence.stop:
            parts += [text[place : reference.span.start], "…"]
            place = reference.span.stop
    return "".join([*parts, text[place : sentence.stop]])


def _extended(document: Document, sentences: Iterable[str]) -> Document:
    start = len(document.text) + 2
    text = "\n\n".join([document.text, CITING_TEXT, *sentences])
    *before, last = document.sections
    section = Section(CITING_TEXT, (CITING_TEXT,), start, len(text))
    return replace(document, text=text, sections=(*before, replace(last, stop=start), section))


def _citations(document: Document, mentions: Sequence[Span]) -> Iterator[Citation]:
    """The citing sentences, each once."""
    for number, section in enumerate(document.sections):
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
