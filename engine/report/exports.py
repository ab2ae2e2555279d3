"""Results for other programs: rows with the same columns, for CSV and data frames, and references as BibTeX and RIS.

One row is one listed part of one hit: a section pair, or the rest. The fields of the hit
repeat in each of its rows, and the contributions of these rows sum to the score, to 1e-5. A result
without hits has no row. `novelty_rows` has one row for each section of a search for novelty.

A document that several queries find is one reference, whose note lists each of these hits. RIS has the evidence of
each hit in a note of its own.
"""

from __future__ import annotations

import csv
import importlib
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.environment import check_extra
from engine.references.extraction import common_references
from engine.report.contract import listed_hits, result_dict
from engine.report.quotes import Quotes
from engine.result import N_SNIPPETS, Hit, Result
from engine.text.cleaning import regex, safe
from engine.text.document import section_label

if TYPE_CHECKING:
    import pandas

HIT_COLUMNS = ("query_id", "rank", "score", "doc_id", "title", "status")
COUNT_COLUMNS = tuple(  # integers; empty if a part has no sections; pages also if the format has no pages
    f"{side}_{field}" for side in ("query", "target") for field in ("section", "start", "end", "page")
)
_FORMULA = ("=", "+", "-", "@", "\t", "\n")  # first characters that make a cell a formula
PART_COLUMNS = (
    *HIT_COLUMNS,
    "kind",
    *("query_section", "query_heading", "query_start", "query_end", "query_page"),
    *("target_section", "target_heading", "target_start", "target_end", "target_page"),
    *("contribution", "similarity", "threshold", "words", "both_cite"),
)
NOVELTY_COLUMNS = (
    *("query_id", "rank", "novelty", "status"),
    *("section", "heading", "kind", "start", "end", "page"),
    *("doc_id", "title", "score"),
    *("target_section", "target_heading", "target_page", "contribution", "similarity", "threshold", "words"),
)


def part_rows(result: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows of a result, each with `PART_COLUMNS`.

    Yields:
        Rows in the order of hits and parts; None for values that a part does not have. `words` are the strongest
        terms, strongest first, separated by "; "; `both_cite` the works that the query and the hit cite.
    """
    for hit in listed_hits(result):
        named = [hit[name] for name in ("rank", "score", "id", "title")]
        shared = dict(zip(HIT_COLUMNS, (result["query"]["id"], *named, result["status"]), strict=True))
        both_cite = "; ".join(reference["name"] for reference in hit["references"]["shared"]) or None
        for part in hit["parts"]:
            yield {
                **shared,
                "kind": part["kind"],
                **_section("query", part["query_section"]),
                **_section("target", part["target_section"]),
                "contribution": part["contribution"],
                "similarity": part["similarity"],
                "threshold": part["threshold"],
                "words": "; ".join(word["term"] for word in part["words"]) or None,
                "both_cite": both_cite,
            }


def novelty_rows(result: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A row for each section, most novel first, with the strongest section pair of its hit.

    Yields:
        Rows with `NOVELTY_COLUMNS`; None for values that a section does not have.
    """
    for rank, values in enumerate(result["sections"], start=1):
        section, hit = values["section"], values["hit"] or {}
        pair = next((part for part in hit.get("parts", ()) if part["kind"] == "section_pair"), None) or {}
        target = pair.get("target_section") or {}
        yield {
            "query_id": result["query"]["id"],
            "rank": rank,
            "novelty": values["novelty"],
            "status": result["status"],
            "section": section["index"],
            "heading": section["heading"] or None,
            "kind": values["kind"],
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


def as_cell(value: Any) -> Any:  # noqa: ANN401
    """A value as a safe cell of CSV: a text that a spreadsheet would evaluate as a formula gets an apostrophe.

    A float has the fewest digits that are the same number in single precision.
    """
    if isinstance(value, float):
        return str(np.float32(value))
    if not isinstance(value, str):
        return value
    text = safe(value, lines=True)
    return f"'{text}" if text.startswith(_FORMULA) else text


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Rows as CSV, each cell made safe by `as_cell`."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(map(as_cell, row) for row in rows)
    return text.getvalue()


def _section(side: str, section: Mapping[str, Any] | None) -> dict[str, Any]:
    values = section or {}
    return {
        f"{side}_section": values.get("index"),
        f"{side}_heading": values.get("heading") or None,
        f"{side}_start": values.get("start"),
        f"{side}_end": values.get("end"),
        f"{side}_page": values.get("page"),
    }


def hit_frame(result: Result) -> pandas.DataFrame:
    """A row for each hit: `HIT_COLUMNS`, then the metadata.

    A metadata field with the name of one of these columns is left out.
    """
    rows: list[dict[str, Any]] = []
    for hit in result.hits:
        values = (result.query.doc_id, hit.rank, hit.score, hit.doc_id, hit.title, result.status.value)
        columns = dict(zip(HIT_COLUMNS, values, strict=True))
        rows.append(columns | {name: value for name, value in hit.metadata.items() if name not in columns})
    frame: pandas.DataFrame = _pandas("Result.to_pandas()").DataFrame(rows, columns=None if rows else HIT_COLUMNS)
    return frame


def part_frame(result: Result, *, n_pairs: int | None = N_SNIPPETS) -> pandas.DataFrame:
    """A row for each part, see `engine.report.exports`."""
    library = _pandas("Result.parts_to_pandas()")
    frame: pandas.DataFrame = library.DataFrame(part_rows(result_dict(result, n_pairs=n_pairs)), columns=PART_COLUMNS)
    # Explicit types, also for columns without any value; "Int64" is the pandas type of integers that can be missing.
    return frame.astype(dict.fromkeys(COUNT_COLUMNS, "Int64") | dict.fromkeys(("similarity", "threshold"), "float64"))


def _pandas(feature: str) -> ModuleType:
    check_extra("pandas", feature, "pandas", "pandas")
    return importlib.import_module("pandas")


# Names of metadata fields in lower case; the first field that has a value is used.
_AUTHORS = ("authors", "author", "creator", "creators", "inventors")
_YEARS = ("year", "date", "published", "publication_date", "created")
_JOURNALS = ("journal", "journal_title", "container_title")
_MEETINGS = ("venue", "booktitle", "conference", "event")
_PATENT_SIGNS = ("inventors", "assignees", "ipc", "cpc")
_PLAIN = ("volume", "issue", "publisher", "doi", "url", "language")
_DOI_PREFIX = regex(r"^(?:https?://(?:dx\.)?doi\.org/|doi:\s*)", re.IGNORECASE)
_N_CITED = 20
_YEAR = regex(r"(?<!\d)(1[4-9]\d\d|20\d\d)(?!\d)")
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
_KEY = regex(r"[^A-Za-z0-9.:+/-]+")


class EntryType(StrEnum):
    """The type of a reference, as far as its metadata shows it."""

    ARTICLE = "article"
    PAPER = "inproceedings"
    PATENT = "patent"
    OTHER = "misc"


_RIS_TYPES = {EntryType.ARTICLE: "JOUR", EntryType.PAPER: "CONF", EntryType.PATENT: "PAT", EntryType.OTHER: "GEN"}


@dataclass(frozen=True, slots=True)
class Publication:
    """The bibliographic data of one document; "" for a field that its metadata lacks."""

    key: str  # unique among the references of one file
    kind: EntryType
    title: str
    authors: tuple[str, ...]
    year: str
    venue: str  # journal or proceedings
    fields: dict[str, str]  # the fields of `_PLAIN` that have a value
    note: str
    hits: Sequence[tuple[Result, Hit]]


def references(results: Iterable[Result]) -> list[Publication]:
    """A reference for each document among all hits, in order of first occurrence."""
    by_document: dict[str, list[tuple[Result, Hit]]] = {}
    for result in results:
        for hit in result.hits:
            by_document.setdefault(hit.doc_id, []).append((result, hit))
    taken: set[str] = set()
    return [_reference(doc_id, hits, taken) for doc_id, hits in by_document.items()]


def bibtex(results: Iterable[Result]) -> str:
    """A BibTeX entry for each document, in UTF-8; special characters of LaTeX are escaped."""
    return "\n".join(_entry(reference) for reference in references(results))


def ris(results: Iterable[Result]) -> str:
    """A RIS reference for each document; lines end in CRLF, as the format requires."""
    lines = [line for reference in references(results) for line in (*_ris_lines(reference), "")]
    return "".join(f"{line}\r\n" for line in lines)


def _reference(doc_id: str, hits: Sequence[tuple[Result, Hit]], taken: set[str]) -> Publication:
    hit = hits[0][1]
    values = {name.lower(): value for name, value in hit.metadata.items() if value not in (None, "", [])}
    journal, meeting = _first(values, _JOURNALS), _first(values, _MEETINGS)
    kind = EntryType.ARTICLE if journal else EntryType.PAPER if meeting else EntryType.OTHER
    if not journal and not meeting and any(name in values for name in _PATENT_SIGNS):
        kind = EntryType.PATENT
    years = [match.group() for name in _YEARS if (match := _YEAR.search(_text(values.get(name, ""))))]
    plain = {name: _text(values[name]) for name in _PLAIN if name in values}
    if "doi" in plain:
        plain["doi"] = _DOI_PREFIX.sub("", plain["doi"])
    return Publication(
        key=_key(doc_id, taken),
        kind=kind,
        title=_text(hit.title) or doc_id,
        authors=_authors(values),
        year=years[0] if years else "",
        venue=journal or meeting,
        fields=plain,
        note="; ".join(
            f"longmatch: rank {hit.rank}, score {hit.score:.4f} for {_text(result.query.title)}" for result, hit in hits
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
            return tuple(_text(name) for name in value if _text(name))
        if value is not None:
            text = _text(value)
            names = text.split(";") if ";" in text else text.split(" and ")
            return tuple(name.strip() for name in names if name.strip())
    return ()


def _first(values: Mapping[str, object], names: Iterable[str]) -> str:
    return next((_text(values[name]) for name in names if name in values), "")


def _text(value: object) -> str:
    """A value on one line; the elements of a list are joined by commas."""
    if isinstance(value, list):
        return ", ".join(_text(element) for element in value)
    return " ".join("".join(letter if letter.isprintable() else " " for letter in str(value)).split())


def _entry(reference: Publication) -> str:
    # BibTeX has no entry type for patents.
    kind = EntryType.OTHER if reference.kind is EntryType.PATENT else reference.kind
    venue = "journal" if reference.kind is EntryType.ARTICLE else "booktitle"
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
    from engine.readers.fields import is_organisation

    escaped = name.translate(_ESCAPES)
    is_whole = is_organisation(name) or re.search(r"\band\b", name, re.IGNORECASE)
    return f"{{{escaped}}}" if is_whole else escaped


def _ris_lines(reference: Publication) -> list[str]:
    tags = {"volume": "VL", "issue": "IS", "publisher": "PB", "doi": "DO", "url": "UR", "language": "LA"}
    lines = [("TY", _RIS_TYPES[reference.kind]), ("ID", reference.key), ("TI", reference.title)]
    lines += [("AU", name) for name in reference.authors]
    lines += [("PY", reference.year), ("T2", reference.venue)]
    lines += [(tags[name], value) for name, value in reference.fields.items()]
    lines += [("N1", reference.note), *(("N1", _evidence(result, hit)) for result, hit in reference.hits)]
    return [*(f"{tag}  - {value}" for tag, value in lines if value), "ER  - "]
