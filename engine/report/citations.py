"""Hits as BibTeX and RIS references, from the metadata that readers and users supply. Text only.

A document that several queries find is one reference, whose note lists each of these hits. RIS has the evidence of
each hit in a note of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from engine.readers.fields import is_organisation
from engine.references.extraction import common_references
from engine.report.quotes import Quotes
from engine.result import N_SNIPPETS, Hit, Result
from engine.text.document import section_label

# Names of metadata fields in lower case; the first field that has a value is used.
_AUTHORS = ("authors", "author", "creator", "creators", "inventors")
_YEARS = ("year", "date", "published", "publication_date", "created")
_JOURNALS = ("journal", "journal_title", "container_title")
_MEETINGS = ("venue", "booktitle", "conference", "event")
_PATENT_SIGNS = ("inventors", "assignees", "ipc", "cpc")
_PLAIN = ("volume", "issue", "publisher", "doi", "url", "language")
_DOI_PREFIX = re.compile(r"^(?:https?://(?:dx\.)?doi\.org/|doi:\s*)", re.IGNORECASE)
_N_CITED = 20
_YEAR = re.compile(r"(?<!\d)(1[4-9]\d\d|20\d\d)(?!\d)")
_SPECIAL = {
    **{character: f"\\{character}" for character in "&%$#_"},
    # Commands in place of the characters, since BibTeX counts braces even if they are escaped.
    "\\": r"{\textbackslash}",
    "{": r"{\textbraceleft}",
    "}": r"{\textbraceright}",
    "~": r"{\textasciitilde}",
    "^": r"{\textasciicircum}",
}
_ESCAPES = str.maketrans(_SPECIAL)
_VERBATIM = str.maketrans({"{": "%7B", "}": "%7D", "\\": "%5C", " ": "%20"})  # of a DOI or URL, which is not escaped
_KEY = re.compile(r"[^A-Za-z0-9.:+/-]+")


class Kind(StrEnum):
    """The type of a reference, as far as its metadata shows it."""

    ARTICLE = "article"
    PAPER = "inproceedings"
    PATENT = "patent"
    OTHER = "misc"


_RIS_TYPES = {Kind.ARTICLE: "JOUR", Kind.PAPER: "CONF", Kind.PATENT: "PAT", Kind.OTHER: "GEN"}


@dataclass(frozen=True, slots=True)
class Reference:
    """The bibliographic data of one document; "" for a field that its metadata lacks."""

    key: str  # unique among the references of one file
    doc_id: str
    kind: Kind
    title: str
    authors: tuple[str, ...]
    year: str
    venue: str  # journal or proceedings
    fields: dict[str, str]  # the fields of `_PLAIN` that have a value
    note: str
    hits: Sequence[tuple[Result, Hit]]


def references(results: Iterable[Result]) -> list[Reference]:
    """A reference for each document among all hits, in order of first occurrence."""
    found: dict[str, list[tuple[Result, Hit]]] = {}
    for result in results:
        for hit in result.hits:
            found.setdefault(hit.doc_id, []).append((result, hit))
    taken: set[str] = set()
    return [_reference(doc_id, hits, taken) for doc_id, hits in found.items()]


def bibtex(results: Iterable[Result]) -> str:
    """A BibTeX entry for each document, in UTF-8; special characters of LaTeX are escaped."""
    return "\n".join(_entry(reference) for reference in references(results))


def ris(results: Iterable[Result]) -> str:
    """A RIS reference for each document; lines end in CRLF, as the format requires."""
    lines = [line for reference in references(results) for line in (*_ris_lines(reference), "")]
    return "".join(f"{line}\r\n" for line in lines)


def _reference(doc_id: str, hits: Sequence[tuple[Result, Hit]], taken: set[str]) -> Reference:
    hit = hits[0][1]
    values = {name.lower(): value for name, value in hit.metadata.items() if value not in (None, "", [])}
    journal, meeting = _first(values, _JOURNALS), _first(values, _MEETINGS)
    kind = Kind.ARTICLE if journal else Kind.PAPER if meeting else Kind.OTHER
    if not journal and not meeting and any(name in values for name in _PATENT_SIGNS):
        kind = Kind.PATENT
    years = [match.group() for name in _YEARS if (match := _YEAR.search(_text(values.get(name, ""))))]
    plain = {name: _text(values[name]) for name in _PLAIN if name in values}
    if "doi" in plain:
        plain["doi"] = _DOI_PREFIX.sub("", plain["doi"])
    return Reference(
        key=_key(doc_id, taken),
        doc_id=doc_id,
        kind=kind,
        title=_text(hit.title) or doc_id,
        authors=_authors(values),
        year=years[0] if years else "",
        venue=journal or meeting,
        fields=plain,
        note="; ".join(
            f"longmatch: rank {one.rank}, score {one.score:.4f} for {_text(result.query.title)}" for result, one in hits
        ),
        hits=hits,
    )


def _evidence(result: Result, hit: Hit) -> str:
    """The strongest section pairs of a hit, with a sentence of each side, and the works that both cite."""
    if not hit.pairs:
        return ""
    quotes = Quotes(result.query, hit, result.language, result.stock)
    parts = []
    for pair in hit.pairs[:N_SNIPPETS]:
        query, target = (quote.text for quote in quotes.of(pair))
        labels = section_label(result.query, pair.query_section), section_label(hit.document, pair.target_section)
        parts.append(f'{pair.contribution / hit.score:.1%} {" -> ".join(labels)}: "{query}" -> "{target}"')
    shared = [reference.name for reference in common_references(result.query, hit.document).shared[:_N_CITED]]
    parts += [f"both cite {', '.join(shared)}"] if shared else []
    return _text(f"longmatch, evidence for {result.query.title}: {'; '.join(parts)}")


def _key(doc_id: str, taken: set[str]) -> str:
    """The doc_id as a key: characters that BibTeX does not allow become "-", and equal keys get numbers."""
    stem = _KEY.sub("-", doc_id).strip("-") or "document"
    key, number = stem, 1
    while key.lower() in taken:  # BibTeX compares keys without case
        number += 1
        key = f"{stem}-{number}"
    taken.add(key.lower())
    return key


def _authors(values: Mapping[str, object]) -> tuple[str, ...]:
    """The names of the authors: the elements of a list, or a text split at ";", or else at " and "."""
    for name in _AUTHORS:
        value = values.get(name)
        if isinstance(value, list):
            return tuple(_text(one) for one in value if _text(one))
        if value is not None:
            text = _text(value)
            names = text.split(";") if ";" in text else text.split(" and ")
            return tuple(one.strip() for one in names if one.strip())
    return ()


def _first(values: Mapping[str, object], names: Iterable[str]) -> str:
    return next((_text(values[name]) for name in names if name in values), "")


def _text(value: object) -> str:
    """A value on one line; the elements of a list are joined by commas."""
    if isinstance(value, list):
        return ", ".join(_text(one) for one in value)
    return " ".join("".join(one if one.isprintable() else " " for one in str(value)).split())


def _entry(reference: Reference) -> str:
    kind = Kind.OTHER if reference.kind is Kind.PATENT else reference.kind  # BibTeX has no entry type for patents
    venue = "journal" if reference.kind is Kind.ARTICLE else "booktitle"
    renamed = {"issue": "number"}
    fields = {
        # The inner braces keep capitals as they are.
        "title": f"{{{reference.title.translate(_ESCAPES)}}}",
        "author": " and ".join(_bibtex_name(name) for name in reference.authors),
        "year": reference.year,
        venue: reference.venue.translate(_ESCAPES),
    }
    for name, value in reference.fields.items():
        escapes = _VERBATIM if name in ("doi", "url") else _ESCAPES
        fields[renamed.get(name, name)] = value.translate(escapes)
    fields["note"] = reference.note.translate(_ESCAPES)
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    return "\n".join([f"@{kind.value}{{{reference.key},", *lines, "}", ""])


def _bibtex_name(name: str) -> str:
    """A name, in braces if it is that of an organisation, or if BibTeX would split it into two names."""
    escaped = name.translate(_ESCAPES)
    is_whole = is_organisation(name) or re.search(r"\band\b", name, re.IGNORECASE)
    return f"{{{escaped}}}" if is_whole else escaped


def _ris_lines(reference: Reference) -> list[str]:
    tags = {"volume": "VL", "issue": "IS", "publisher": "PB", "doi": "DO", "url": "UR", "language": "LA"}
    lines = [("TY", _RIS_TYPES[reference.kind]), ("ID", reference.key), ("TI", reference.title)]
    lines += [("AU", name) for name in reference.authors]
    lines += [("PY", reference.year), ("T2", reference.venue)]
    lines += [(tags[name], value) for name, value in reference.fields.items()]
    lines += [("N1", reference.note), *(("N1", _evidence(result, hit)) for result, hit in reference.hits)]
    return [*(f"{tag}  - {value}" for tag, value in lines if value), "ER  - "]
