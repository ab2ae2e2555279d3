"""Weights of the sections of a query, by kind, heading or number. Scores nothing.

The weight of a section is that of the most specific name that fits: its number, its own heading, the nearest heading
above it, its kind by the metadata of the query, its kind by its headings and text.
Numbers are those of `longmatch show`, from 1. Case and the number of a heading are ignored, so `pumps` names a
section "3.1 Pumps". A section that no name fits has the weight 1.

A document can define kinds of its own in its metadata: the field "kind.claims" lists the headings whose sections are
claims. And some headings are so common that they name a kind in any document: "What is claimed is" names claims.
"""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from engine.errors import QueryError
from engine.search.query import Query
from engine.text.document import KIND, Document
from engine.text.section_kinds import SectionKind, heading_name, section_kinds

_HEADINGS: Mapping[str, str] = {
    "claims": """claim|claims|i claim|we claim|what is claimed|what is claimed is|the invention claimed is|patent claims
        ansprüche|patentansprüche|schutzansprüche|revendications|reivindicaciones|reivindicações|rivendicazioni
        conclusies|patentkrav|формула изобретения|特許請求の範囲|权利要求|权利要求书|請求項|청구범위""",
    "abstract": """abstract|abstract of the disclosure|abstract of the invention|zusammenfassung|kurzfassung|résumé
        resumen|resumo|riassunto|samenvatting|sammanfattning|аннотация|реферат|要約|摘要|요약""",
    "description": """description|detailed description|description of the invention|description of embodiments
        detailed description of the invention|detailed description of embodiments
        description of the preferred embodiment
        description of the preferred embodiments|detailed description of the preferred embodiment
        detailed description of the preferred embodiments|beschreibung|ausführliche beschreibung|description détaillée
        descripción|descripción detallada|descrição|descrizione|beschrijving|発明の詳細な説明|说明书""",
    "introduction": "introduction|einleitung|introducción|introdução|introduzione|inleiding|введение|引言|はじめに",
    "methods": """method|methods|methodology|materials and methods|methods and materials|patients and methods
        experimental procedures|methoden|méthodes|métodos|metodi|методы|方法""",
    "results": "results|experimental results|ergebnisse|résultats|resultados|risultati|результаты|结果|結果",
    "conclusions": """conclusion|conclusions|concluding remarks|fazit|schlussfolgerungen|conclusiones|conclusões
        conclusioni|conclusie|заключение|выводы|结论|結論""",
}
_KIND_OF_HEADING = {
    name.strip(): kind for kind, names in _HEADINGS.items() for name in names.replace("\n", "|").split("|")
}
KINDS = frozenset([*(kind.value for kind in SectionKind), *_HEADINGS])


def key_of(name: str) -> str:
    """A name in the form in which names are compared; a number does not change."""
    return heading_name(name) or name.strip().casefold()


def names_of_sections(document: Document, kinds: Sequence[SectionKind] | None = None) -> list[tuple[str, ...]]:
    """The names of each section of a document, in the form of `key_of`, the most specific name first."""
    own = _own_kinds(document)
    kinds = section_kinds(document) if kinds is None else kinds
    return [tuple(dict.fromkeys(_names(document, number, own, kind))) for number, kind in enumerate(kinds)]


def _names(document: Document, number: int, own: Mapping[str, tuple[str, ...]], kind: SectionKind) -> Iterator[str]:
    section = document.sections[number]
    headings = [key_of(heading) for heading in (section.heading, *reversed(section.path)) if heading.strip()]
    yield str(number + 1)
    yield from headings
    for heading in headings:
        yield from own.get(heading, ())
    for heading in headings:
        if heading in _KIND_OF_HEADING:
            yield _KIND_OF_HEADING[heading]
    yield kind.value


def _own_kinds(document: Document) -> dict[str, tuple[str, ...]]:
    """The kinds that the metadata of a document gives to headings."""
    found: dict[str, tuple[str, ...]] = defaultdict(tuple)
    for field, value in document.metadata.items():
        if field.startswith(KIND):
            for heading in value if isinstance(value, list) else [value]:
                if isinstance(heading, str):
                    found[key_of(heading)] += (key_of(field.removeprefix(KIND)),)
    return found


MOST_WEIGHT = 1_000_000
_N_NAMED = 5  # headings that an error lists


def with_section_weights(query: Query, skip: Collection[str], weights: Mapping[str, float]) -> Query:
    """A query whose sections are skipped or weighted.

    Raises:
        QueryError: a weight cannot be used.
    """
    kinds = section_kinds(query.document) if skip or weights else query.kinds
    of_sections = section_weights(query.document, weights, kinds) if weights else ()
    skipped = frozenset(map(SectionKind, skip))
    in_targets = skipped | kinds_without_weight(weights)
    return replace(query, skip=skipped, skip_in_targets=in_targets, section_weights=of_sections, kinds=kinds)


def section_weights(
    document: Document, weights: Mapping[str, float], kinds: Sequence[SectionKind] | None = None
) -> tuple[float, ...]:
    """The weight of each section of a document; () where all are 1.

    Raises:
        QueryError: a weight is not such a number, two names are the same, or a name fits no section and is not a kind.
    """
    given: dict[str, float] = {}
    for name, weight in weights.items():
        _check(name, weight)
        key = key_of(name)
        if key in given:
            raise QueryError(f"two weights name the same sections, {name!r} the second time; give one")
        given[key] = float(weight)
    names = names_of_sections(document, kinds)
    known = {name for of_section in names for name in of_section}
    for name in weights:
        if key_of(name) not in known and key_of(name) not in KINDS:
            raise QueryError(f"no section of {document.doc_id} is named {name!r}; {_hint(document, name)}")
    found = tuple(next((given[name] for name in of_section if name in given), 1.0) for of_section in names)
    return () if all(weight == 1 for weight in found) else found


def kinds_without_weight(weights: Mapping[str, float]) -> frozenset[SectionKind]:
    """The kinds, except body, that have the weight 0 by their own names, which is the same as skipping them."""
    names = {key_of(name) for name, weight in weights.items() if not weight}
    return frozenset(kind for kind in SectionKind if kind is not SectionKind.BODY and kind.value in names)


def _check(name: object, weight: object) -> None:
    if not isinstance(name, str) or not name.strip():
        raise QueryError(f"the section {name!r:.40} is no name; name a heading, a kind or a number as text")
    is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
    if not is_number or not 0 <= weight <= MOST_WEIGHT:  # type: ignore[operator]
        raise QueryError(f"the weight of {name!r} is {weight!r:.40}; it must be a number from 0 to {MOST_WEIGHT:,}")


def _hint(document: Document, name: str) -> str:
    headings = list(dict.fromkeys(section.heading for section in document.sections if section.heading))
    by_key = {key_of(heading): heading for heading in headings}
    similar = [by_key[key] for key in difflib.get_close_matches(key_of(name), by_key, 2, cutoff=0.6)]
    if similar:
        return f"did you mean {' or '.join(map(repr, similar))}?"
    listed = ", ".join(map(repr, headings[:_N_NAMED])) + (", …" if len(headings) > _N_NAMED else "")
    kinds = ", ".join(sorted(KINDS))
    return f"name a heading ({listed or 'it has none'}), a kind ({kinds}) or a number to {len(document.sections)}"
