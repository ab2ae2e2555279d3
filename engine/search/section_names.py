"""The names of a section of a query: its number, headings, kinds from metadata, kinds from headings.

There are two sorts of kinds besides those of `engine.text.section_kinds`. A document can define its own in its
metadata: the field "kind.claims" lists the headings whose sections are claims. And some headings are so common that
they name a kind in any document: "What is claimed is" names claims as "Claims" does. Scores nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

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
    """The names of each section of a document, in the form of `key_of`, the most specific name first.

    Args:
        document: a query.
        kinds: of its sections; computed by default.
    """
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
