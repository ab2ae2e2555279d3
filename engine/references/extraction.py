"""The references of a text, those by which a document is known, and those that two documents have in common."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from engine.references.identifiers import Kind, Mention, numbered
from engine.references.law import cases, statutes
from engine.text.cleaning import regex
from engine.text.document import Document
from engine.text.segmentation import Span

_EVERY_KIND = frozenset(Kind)
_LAW = frozenset({Kind.STATUTE, Kind.REGULATION})
_SERIES = ("rfc", "pep", "eip", "erc", "bip")
_OF_SERIES = regex(rf"(?:^|/)((?:{'|'.join(_SERIES)})[\s_-]*\d+)(?!\d)", re.IGNORECASE)
_ARXIV_STEM = regex(r"(?:\d{4}\.\d{4,5}|(?<![a-z-])[a-z-]++/\d{7})(?:v\d+)?(?![\d.]*\d)")
_ARXIV_IDS = ("arxiv", "arxiv_id", "arxivid")
_AS_WRITTEN = ("doi", "number", "patent_number", "publication_number")
_OF_CASES = ("citation", "citations", "cite", "cites")


@dataclass(frozen=True, slots=True)
class SharedReference:
    """A work that both documents cite, with all mentions."""

    kind: Kind
    name: str
    query: tuple[Span, ...]
    target: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class CommonReferences:
    """What two documents cite together, and where they cite each other."""

    shared: tuple[SharedReference, ...]  # those that both cite often first; without the two documents themselves
    to_target: tuple[Span, ...]  # where the query cites the target
    to_query: tuple[Span, ...]


@lru_cache(maxsize=4)  # of texts: a query and a target alternate
def references(
    text: str, kinds: frozenset[Kind] = _EVERY_KIND, works: frozenset[str] | None = None
) -> tuple[Mention, ...]:
    """The references of a text, in its order; those of other kinds or other than some works may be left out.

    Time grows with the length.
    """
    return tuple(_references(text, kinds, works))


def _references(text: str, kinds: frozenset[Kind], works: frozenset[str] | None = None) -> list[Mention]:
    every = [*cases(text)] if kinds & {Kind.CASE, *_LAW} else []
    if kinds & _LAW:
        every += statutes(text)
    every += numbered(text, kinds, works)
    every.sort(key=lambda reference: (reference.span.start, -reference.span.stop))
    found: list[Mention] = []
    for reference in every:
        # "10.48550/arXiv.1706.03762" is found as a DOI and as an arXiv id.
        is_within = bool(found) and found[-1].name == reference.name and reference.span.start < found[-1].span.stop
        if not is_within:
            found.append(reference)
    return found


def own_references(document: Document) -> dict[str, Kind]:
    """The names by which other texts cite a document, from its metadata, its doc_id and its title."""
    values = {
        key.lower(): [str(item) for item in (value if isinstance(value, list | tuple) else [value])]
        for key, value in document.metadata.items()
    }
    stem = document.doc_id.rpartition("/")[2]
    texts = [f"{key.upper()} {value}" for key in _SERIES for value in values.get(key, ())]
    texts += [
        f"{family.upper()} {number}" for family in values.get("family", ()) for number in values.get("number", ())
    ]
    texts += [match[1].upper() for text in (document.doc_id, document.title) for match in _OF_SERIES.finditer(text)]
    texts += [f"arXiv:{value.lower().removeprefix('arxiv:')}" for key in _ARXIV_IDS for value in values.get(key, ())]
    texts += [f"arXiv:{match[0]}" for match in _ARXIV_STEM.finditer(stem)]
    texts += [value for key in _AS_WRITTEN for value in values.get(key, ())]
    texts += [f"Case, {value}" for key in _OF_CASES for value in values.get(key, ())]  # "23 Or. 12" alone is unclear
    texts.append(stem if stem[:2] in ("US", "EP", "WO") else "")
    named = {text for text in texts if text and not text.isdigit()}  # a number alone is no reference
    return {reference.name: reference.kind for text in sorted(named) for reference in _in_name(text)}


def named_works(text: str) -> dict[str, Kind]:
    """The works that a text of a few words names, as "347 U.S. 483" or "RFC 2119 and RFC 8174"."""
    return {reference.name: reference.kind for reference in _in_name(text) or _in_name(f"Case, {text}")}


def citations_of(works: Mapping[str, Kind], text: str) -> list[Mention]:
    """The references of a text to some works."""
    # All spellings of a name end in the same three digits, so most texts need no extraction.
    if not any(digits[-1][-3:] in text for name in works if (digits := re.findall(r"\d+", name))):
        return []
    found = references(text, frozenset(works.values()), frozenset(works))
    return [reference for reference in found if reference.name in works]


@lru_cache(maxsize=1 << 8)  # those of a query are needed for every hit
def _in_name(text: str) -> tuple[Mention, ...]:
    return tuple(_references(text, _EVERY_KIND))


def common_references(query: Document, target: Document, own: Mapping[str, Kind] | None = None) -> CommonReferences:
    """The references that both texts make; places of one case in several reporters count as one.

    Args:
        own: those of the query, if they are known.
    """
    own, others = own_references(query) if own is None else own, own_references(target)
    mine = references(query.text)
    works = {**own} | {reference.name: reference.kind for reference in mine}
    theirs = references(target.text, frozenset(works.values()), frozenset(works)) if works else ()
    same = _same_works((*mine, *theirs))
    mentions: dict[str, tuple[Kind, list[Span], list[Span]]] = {}
    for side, found in ((1, mine), (2, theirs)):
        for reference in found:
            if reference.name not in own and reference.name not in others:
                name = same.get(reference.name, reference.name)
                entry = mentions.setdefault(name, (reference.kind, [], []))
                (entry[1] if side == 1 else entry[2]).append(reference.span)
    shared = [
        SharedReference(kind, name, _apart(in_query), _apart(in_target))
        for name, (kind, in_query, in_target) in mentions.items()
        if in_query and in_target
    ]
    shared.sort(key=lambda reference: -min(len(reference.query), len(reference.target)))
    return CommonReferences(
        tuple(shared),
        tuple(reference.span for reference in mine if reference.name in others and reference.name not in own),
        tuple(reference.span for reference in theirs if reference.name in own and reference.name not in others),
    )


def _same_works(mentions: Iterable[Mention]) -> dict[str, str]:
    """For each place of a case with parallel places the one name of all of them."""
    parents: dict[str, str] = {}

    def name_of(name: str) -> str:
        while (parent := parents.setdefault(name, name)) != name:
            parents[name] = name = parents[parent]
        return name

    for reference in mentions:
        if reference.parallel:
            parents[name_of(reference.name)] = name_of(reference.parallel)
    return {name: name_of(name) for name in list(parents)}


def _apart(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The spans in order, without those that overlap an earlier one: parallel places side by side stay."""
    found: list[Span] = []
    for span in spans:
        if not found or span.start >= found[-1].stop:
            found.append(span)
    return tuple(found)
