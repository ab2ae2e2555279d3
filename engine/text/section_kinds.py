"""Recognises sections of references, acknowledgements, appendix or boilerplate by their headings and texts.

Pure functions of a document. Precision first: a heading alone is not enough where the word also names a topic
("License" in a specification of package metadata), and a text alone is references only where nearly all of it
looks like citations. An index stores the kinds of its sections (`engine.words.apart`), so a change of the rules
needs a new `FORMAT` of the index (`engine.store.catalog`).

Letters in shapes: A sections.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from engine.text.cleaning import regex
from engine.text.document import Document
from engine.text.segmentation import Section

WINDOW_CHARS = 400  # of text that is classified together: two or three citations
LEAST_CITED = 0.8  # share of windows full of citations, in a section of references without such a heading
LEAST_CITED_HEADED = 0.3  # share of windows with traces of citations, under a heading of references
_FEWEST_WINDOWS = 2
_MAX_STATEMENT_CHARS = 3_000  # a statement on rights or interests that is longer is a topic
_FRONT, _BACK = 0.1, 0.85  # shares of a text: boilerplate starts before the first or ends after the second


class SectionKind(StrEnum):
    """The purpose of a section."""

    BODY = "body"
    REFERENCES = "references"
    ACKNOWLEDGEMENTS = "acknowledgements"
    APPENDIX = "appendix"
    BOILERPLATE = "boilerplate"


# As stored in files: a set of kinds is the sum of their bits. Body has no bit.
_BITS = {
    SectionKind.BODY: 0,
    SectionKind.REFERENCES: 1,
    SectionKind.ACKNOWLEDGEMENTS: 2,
    SectionKind.APPENDIX: 4,
    SectionKind.BOILERPLATE: 8,
}


@dataclass(frozen=True, slots=True)
class _Signs:
    """The number of signs of citations in a window, and the number of their kinds."""

    signs: int
    kinds: int


_FEWEST_SIGNS = _Signs(5, 3)  # related work has years and "et al.", tables have numbers
_FEWEST_SIGNS_HEADED = _Signs(2, 1)

_REFERENCES = frozenset(
    """references|reference list|list of references|bibliography|selected bibliography|works cited
    literature cited|references cited|cited literature|references and notes|notes and references
    normative references|informative references|non-normative references
    literatur|literaturverzeichnis|quellenverzeichnis|einzelnachweise|références|bibliographie
    références bibliographiques|notes et références|ouvrages cités|referencias|referencias bibliográficas
    bibliografía|referências|referências bibliográficas|bibliografia|riferimenti|riferimenti bibliografici
    literatuur|literatuurlijst|referenties|bibliografie|referenser|litteratur|referencer|referanser|literatura
    piśmiennictwo|литература|список литературы|библиография|источники|література|список літератури|lähteet
    kaynakça|kaynaklar|βιβλιογραφία|参考文献|參考文獻|引用文献|文献|주석|참고문헌|참고 문헌|المراجع|المصادر
    المصادر والمراجع|منابع|مراجع|ביבליוגרפיה|מקורות|संदर्भ|सन्दर्भ""".replace("\n    ", "|").split("|")
)
_NOTES = frozenset(["notes", "endnotes", "reference", "citations", "literature", "sources", "quellen"])
_LINKS = frozenset(
    """further reading|external links|weblinks|liens externes|enlaces externos|ligações externas|collegamenti esterni
    externe links|externa länkar|linki zewnętrzne|ссылки|外部链接|外部連結|外部リンク|외부 링크|وصلات خارجية""".replace(
        "\n    ", "|"
    ).split("|")
)
_ACKNOWLEDGEMENTS = frozenset(
    """acknowledgements|acknowledgments|acknowledgement|acknowledgment|acknowledgements and funding
    acknowledgments and disclosure of funding|thanks|special thanks|credits|contributors|acknowlegments
    acknowledgements and contributors""".replace("\n    ", "|").split("|")
)
_ACKNOWLEDGEMENTS_ABROAD = frozenset(
    """danksagung|danksagungen|remerciements|agradecimientos|agradecimentos|ringraziamenti|dankwoord|podziękowania
    благодарности|подяки|tack|takk|kiitokset|teşekkür|teşekkürler|ευχαριστίες|謝辞|致谢|致謝|감사의 글|شكر وتقدير
    """.replace("\n    ", "|")
    .strip("|")
    .split("|")
)
_STATEMENTS = frozenset(
    """copyright|copyright notice|copyright statement|full copyright statement|copyright waiver|license|licence
    licensing|licensing information|disclaimer|disclaimers|disclaimer of validity|intellectual property
    intellectual property statement|intellectual property rights|rights and permissions|legal notice|impressum
    conflict of interest|conflicts of interest|competing interests|declaration of competing interest|funding
    funding information|author contributions|authors' contributions|lizenz|haftungsausschluss
    mentions légales|aviso legal""".replace("\n    ", "|").split("|")
)
_FRAMES = frozenset(
    """table of contents|contents|list of figures|list of tables|status of this memo|author's address
    authors' addresses|authors' address|author's addresses|author address|author addresses|about the author
    about the authors|inhaltsverzeichnis|inhalt|table des matières|índice|índice general|sommario|indice generale
    inhoudsopgave|spis treści|оглавление|содержание|目录|目錄|目次|차례|목차""".replace("\n    ", "|").split("|")
)
_APPENDIX = regex(
    r"(?:appendi(?:x|ces)|annex(?:es)?|anhang|anhänge|annexe|anexos?|apéndices?|apêndices?|appendice|allegat[oi]"
    r"|bijlagen?|załącznik|dodatek|приложени[ея]|додат(?:ок|ки)|liitteet|liite|bilag(?:a|or)?|付録|附录|附錄|부록|ملحق)"
    r"(?:\s*(?:[:.\u2013\u2014-].*)?|\s*(?:[a-z]|[ivx]+|\d{1,3})(?:\.\d+)*(?:[\s:.,)\u2013\u2014-].*)?)"
    r"|supplementary (?:material|information|data)|supporting information|online appendix"
)
_LETTERED = regex(r"[A-Z](?:\.\d{1,2})*\.?\s+\S")
_NUMBER = regex(r"^(?:\d{1,3}(?:\.\d{1,3})*[.):]?|[ivxlc]{1,6}[.):]|[a-z](?:\.\d{1,3})*[.):]) ")
_YEAR = r"(?<![\w./-])(?:1[5-9]|20)\d\d[a-z]?(?![\w/]|-\d)"
_LABEL = r"\[\d{1,3}\]|\[[A-Z][\w+-]{1,20}\]"
_LINK = r"https?://|\bdoi\b|\barxiv\b"
# Years, labels and links, after one set of their first characters, to which a regular expression skips quickly.
_NEEDED = regex(
    r"[12\[hHdDaA](?:(?<=[12])(?<![\w./-].)(?:(?<=1)[5-9]|(?<=2)0)\d\d(?i:[a-z]?)(?![\w/]|-\d)"
    r"|(?<=\[)(?i:\d{1,3}\]|[a-z][\w+-]{1,20}\])"
    r"|(?<=[hH])(?i:ttps?://)|(?<!\w.)(?:(?<=[dD])(?i:oi)|(?<=[aA])(?i:rxiv))\b)"
)
_SIGN = regex(
    rf"(?P<year>{_YEAR})"
    r"|(?P<initial>(?<![^\W_])[^\W\d_a-zà-öø-ÿ]\.(?=[ ,;:A-Z-]))"
    rf"|(?P<label>{_LABEL})"
    rf"|(?P<link>{_LINK})"
    r"|(?P<pages>\bpp?\. ?\d|\bpages? \d|\d\s?[\u2013-]{1,2}\s?\d+\b|\d\s?\(\d+\)|\d+:\d+)"
    r"|(?P<venue>\bin proc|\bproceedings\b|\bjournal\b|\btransactions\b|\bconference\b|\bworkshop\b|\bpress\b|\bvol\b"
    r"|\bet al\b|\beds?\.|\btechnical report\b|\bpreprint\b|\bthesis\b|\bisbn\b|\brfc ?\d)",
    re.IGNORECASE,
)
_THANKS = regex(
    r"\bthank|\bgrateful|gratitude|\bindebted|\bgrants?\b|\bfunded\b|supported (?:in part )?by|\bappreciat|\bcredit"
    r"|\bcontribut(?:ed|ors|ions)\b",
    re.IGNORECASE,
)
_RIGHTS = regex(
    r"all rights reserved|public domain|permission (?:is|to)|licen[sc]ed under|warrant(?:y|ies)|creative commons"
    r"|\bcc0\b|copyright (?:\(c\)|©|\d{4}|and related)|©|hereby|claims? (?:of rights|to pertain)|\bdeclares?\b"
    r"|\bno (?:competing|conflict)|supported by|funded by|\bgrants?\b|conceived|haftung|urheberrecht",
    re.IGNORECASE,
)


def section_kinds(document: Document) -> tuple[SectionKind, ...]:
    """The kind of each section of a document."""
    kinds: list[SectionKind] = []
    for section in document.sections:
        kind = _kind(document.text, section)
        is_after = kind is SectionKind.BODY and SectionKind.REFERENCES in kinds
        if is_after and section.path and _LETTERED.match(section.path[0]):
            kind = SectionKind.APPENDIX  # papers letter the sections after their references
        kinds.append(kind)
    return tuple(kinds)


def kind_bits(kinds: Collection[SectionKind]) -> int:
    """A set of kinds as bits; body has no bit."""
    return sum(_BITS[kind] for kind in set(kinds))


def section_bits(document: Document) -> NDArray[np.uint8]:
    """(A,) the kind of each section of a document as a bit, 0 for body; [0] for a document without sections."""
    return np.array([_BITS[kind] for kind in section_kinds(document)] or [0], np.uint8)


def _kind(text: str, section: Section) -> SectionKind:
    for heading in reversed(section.path or (section.heading,)):
        kind = _kind_by(heading, text, section)
        if kind is not SectionKind.BODY:
            return kind
    if _share_cited(text, section, is_headed=False) >= LEAST_CITED:
        return SectionKind.REFERENCES
    return SectionKind.BODY


def _kind_by(heading: str, text: str, section: Section) -> SectionKind:
    """The kind that a heading names, if the text agrees."""
    name = heading_name(heading)
    size = section.stop - section.start
    if name in _REFERENCES or name in _NOTES:
        is_cited = _share_cited(text, section, is_headed=name in _REFERENCES) >= LEAST_CITED_HEADED
        return SectionKind.REFERENCES if is_cited else SectionKind.BODY
    if name in _LINKS:
        return SectionKind.REFERENCES if section.stop >= _BACK * len(text) else SectionKind.BODY
    if name in _ACKNOWLEDGEMENTS_ABROAD:
        return SectionKind.ACKNOWLEDGEMENTS
    if name in _ACKNOWLEDGEMENTS:
        is_thanks = _THANKS.search(text, section.start, section.stop) is not None
        return SectionKind.ACKNOWLEDGEMENTS if is_thanks else SectionKind.BODY
    if name in _STATEMENTS:
        is_statement = size <= _MAX_STATEMENT_CHARS and _RIGHTS.search(text, section.start, section.stop) is not None
        return SectionKind.BOILERPLATE if is_statement and _is_at_edge(text, section) else SectionKind.BODY
    if name in _FRAMES:
        return SectionKind.BOILERPLATE if _is_at_edge(text, section) else SectionKind.BODY
    if _APPENDIX.fullmatch(name):
        return SectionKind.APPENDIX
    return SectionKind.BODY


def _is_at_edge(text: str, section: Section) -> bool:
    return section.start <= _FRONT * len(text) or section.stop >= _BACK * len(text)


@lru_cache(maxsize=1 << 14)
def heading_name(heading: str) -> str:
    """The words of a heading without its number, case and final punctuation; "" where nothing is left."""
    return _NUMBER.sub("", " ".join(heading.casefold().replace("\u2019", "'").split())).rstrip(" .:")


def _share_cited(text: str, section: Section, *, is_headed: bool) -> float:
    """The share of the windows of a section that look like citations; a heading of references lowers the threshold.

    Without such a heading, the rest of a section is not read if its first window has too few signs.
    """
    start = section.start + len(section.heading) if text.startswith(section.heading, section.start) else section.start
    starts: Sequence[int] = range(start, max(start + 1, section.stop - WINDOW_CHARS // 2), WINDOW_CHARS)
    fewest = _FEWEST_SIGNS_HEADED if is_headed else _FEWEST_SIGNS
    if not is_headed and (len(starts) < _FEWEST_WINDOWS or not _is_cited(text, start, section.stop, fewest)):
        return 0.0
    return sum(_is_cited(text, start, section.stop, fewest) for start in starts) / len(starts)


def _is_cited(text: str, start: int, stop: int, fewest: _Signs) -> bool:
    stop = min(stop, start + WINDOW_CHARS)
    if not _NEEDED.search(text, start, stop):  # most windows of a body; the other signs take longer to find
        return False
    signs = [match.lastgroup for match in _SIGN.finditer(text, start, stop)]
    kinds = set(signs)
    return len(signs) >= fewest.signs and len(kinds) >= fewest.kinds and bool(kinds & {"year", "link", "label"})
