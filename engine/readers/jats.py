"""JATS, the XML of journal articles (PubMed Central, publishers)."""

from __future__ import annotations

from engine.readers.left_out import FIGURES, REFERENCES, elements_left_out
from engine.readers.markup import Element, Grammar, HeadingMark, local_name, words, write
from engine.text.blocks import Blocks
from engine.text.cleaning import one_line
from engine.text.document import KIND, Document, MetadataValue, Scalar, assemble

_DROPPED = frozenset([
    "ref-list", "tex-math", "object-id", "permissions", "counts", "journal-meta", "fn-group", "glossary", "graphic",
])  # fmt: skip
_NOT_READ = {"ref": REFERENCES, "graphic": FIGURES, "inline-graphic": FIGURES, "media": FIGURES}
_HEADED = frozenset(["sec", "app", "abstract", "trans-abstract", "ack", "boxed-text"])


def read_tree(root: Element, doc_id: str, source: str) -> Document:
    """Read an article: title, abstracts, body, appendices and captions; not the reference list.

    Raises:
        DocumentError: no text, or too much.
    """
    article = _Article(root)
    title = words(root.find(".//{*}article-meta/{*}title-group/{*}article-title"))
    blocks = Blocks()
    blocks.add(title)
    for abstract in article.meta_all("abstract"):
        if abstract.find("{*}title") is None:
            blocks.add_heading("Abstract", 1)
        write(abstract, _GRAMMAR, blocks)
    for tag in ("body", "floats-group", "back"):
        part = root.find(f"{{*}}{tag}")
        if part is not None:
            write(part, _GRAMMAR, blocks)
    return assemble(
        blocks.text,
        blocks.headings,
        doc_id=doc_id,
        source=source,
        title=title,
        metadata=article.metadata() | _kinds(root),
        left_out=elements_left_out([root], _NOT_READ),
    )


def _kinds(root: Element) -> dict[str, MetadataValue]:
    """Headings by the `sec-type` of their sections, under fields such as "kind.methods"."""
    found: dict[str, list[Scalar]] = {}
    for section in root.iter("{*}sec"):
        title = words(section.find("{*}title"))
        for kind in (section.get("sec-type") or "").split("|"):
            if title and kind.strip():
                found.setdefault(f"{KIND}{one_line(kind)}", []).append(title)
    return dict(found)


def _is_dropped(element: Element) -> bool:
    tag = local_name(element)
    if tag == "label":
        return local_name(element.getparent()) in _HEADED
    return tag in _DROPPED


def _heading(element: Element) -> HeadingMark | None:
    """The title of a section; the titles of figures and lists are text."""
    if local_name(element) != "title":
        return None
    parent = element.getparent()
    if parent is None or local_name(parent) not in _HEADED:
        return None
    level = sum(local_name(above) in _HEADED for above in element.iterancestors())
    return HeadingMark(level, words(parent.find("{*}label")))


_BLOCKS = frozenset([
    "abstract", "ack", "alternatives", "app", "back", "body", "boxed-text", "caption", "def-item", "disp-formula",
    "disp-formula-group", "disp-quote", "fig", "floats-group", "fn", "label", "list", "notes", "p", "sec", "speech",
    "statement", "supplementary-material", "table", "table-wrap", "table-wrap-foot", "tbody", "thead", "title",
    "verse-group", "verse-line",
])  # fmt: skip
_GRAMMAR = Grammar(
    blocks=_BLOCKS,
    items=frozenset(["list-item"]),
    rows=frozenset(["tr"]),
    cells=frozenset(["td", "th"]),
    breaks=frozenset(["break"]),
    verbatim=frozenset(["preformat", "code"]),
    is_dropped=_is_dropped,
    heading=_heading,
)


class _Article:
    """The front matter of an article."""

    def __init__(self, root: Element) -> None:
        self._journal = words(root.find(".//{*}journal-meta//{*}journal-title"))
        self._meta = root.find(".//{*}article-meta")

    def meta_all(self, tag: str) -> list[Element]:
        """Direct children of the article's own metadata."""
        return [] if self._meta is None else self._meta.findall(f"{{*}}{tag}")

    def metadata(self) -> dict[str, MetadataValue]:
        """The fields of the article that are not empty, under the names that TEI and LaTeX also use."""
        fields: dict[str, MetadataValue] = {"authors": [*self._authors()], "journal": self._journal}
        for identifier in self.meta_all("article-id"):
            if (kind := identifier.get("pub-id-type")) in ("doi", "pmid", "pmc"):
                fields[kind] = words(identifier)
        years = [words(date.find("{*}year")) for date in self.meta_all("pub-date")]
        fields["year"] = min((int(year) for year in years if year.isdecimal()), default=None)
        fields["keywords"] = [words(word) for group in self.meta_all("kwd-group") for word in group.iter("{*}kwd")]
        return {field: value for field, value in fields.items() if value}

    def _authors(self) -> list[str]:
        names = []
        for group in self.meta_all("contrib-group"):
            for person in group.iterfind("{*}contrib"):
                name = person.find(".//{*}name")
                if person.get("contrib-type", "author") != "author" or name is None:
                    continue
                names.append(one_line(f"{words(name.find('{*}given-names'))} {words(name.find('{*}surname'))}"))
        return names
