"""ODT (OpenDocument text): headings, paragraphs, lists, tables and notes; not contents, comments and changes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from lxml import etree

from engine.errors import DocumentError
from engine.readers import left_out as reasons
from engine.readers import markup
from engine.readers.archive import Archive, member_name
from engine.readers.blocks import Blocks
from engine.readers.markup import Element, Grammar, HeadingMark, local_name, parse_safely, rendered, words, write
from engine.readers.scalars import authors_of
from engine.text.document import Document, MetadataValue, is_made_up_title
from engine.text.numbering import numeral

_REASONS = {
    **dict.fromkeys(
        ["alphabetical-index", "illustration-index", "object-index", "table-index", "table-of-content", "user-index"],
        reasons.CONTENTS,
    ),
    **dict.fromkeys(["annotation-end", "bibliography-source", "sequence-decls", "shape", "variable-decls"], ""),
    "annotation": reasons.COMMENTS,
    "forms": reasons.FORM,
    "image": reasons.FIGURES,
    "object": reasons.OBJECTS,
    "object-ole": reasons.OBJECTS,
    "ruby-text": reasons.READINGS,
    "tracked-changes": reasons.DELETED,
    "number": "",
}
_SPACES = frozenset(["s", "tab"])
_DRAWING_WORDS = re.compile(r"\{(?=[^}]*svg)[^}]*+\}(title|desc)$")  # alternative text of a picture
_PARAGRAPHS = frozenset(["p", "h"])
_SHAPES = frozenset(["text-box", "custom-shape", "rect", "circle", "ellipse", "polygon", "polyline", "path", "line"])
_OWN = "longmatch"  # an attribute: what the style of an element means


def read(data: bytes, doc_id: str, source: str) -> Document:
    """Read an OpenDocument text. A note follows the paragraph that refers to it.

    The title is that of the properties, else the first paragraph of style Title.
    """
    archive = Archive(data, "ODT")
    if "META-INF/manifest.xml" in archive and b"encryption-data" in archive.read("META-INF/manifest.xml"):
        raise DocumentError("it is encrypted; save it without a password")
    root = parse_safely(archive.read("content.xml"))
    body = root.find("{*}body/{*}text")
    if body is None:
        raise DocumentError("it is not an OpenDocument text; save it as .odt")
    blocks = Blocks()
    blocks.expect(markup.all_text(body))
    styles = _part(archive, "styles.xml", blocks)
    _space(body)
    sheets = [one for one in (styles, root) if one is not None]
    _mark_styles(body, sheets)
    _mark_lists(body, sheets)
    _mark_headings(body, sheets)
    markup.lift(body, _SHAPES, _PARAGRAPHS)
    _insert_formulas(archive, body)
    _move_notes(body)
    write(body, _GRAMMAR, blocks)
    if styles is not None:
        parts = styles.iter(
            *(f"{{*}}{kind}{place}" for kind in ("header", "footer") for place in ("", "-left", "-first"))
        )
        blocks.left_out[reasons.RUNNING_HEADS] += sum(markup.n_words(part) > 0 for part in parts)
    meta = _part(archive, "meta.xml", blocks)
    declared = "" if meta is None else words(meta.find(".//{*}meta/{*}title"))
    title = _titled(body, root) or declared if is_made_up_title(declared) else declared
    return blocks.document(doc_id, source, title, _metadata(meta))


def _part(archive: Archive, name: str, blocks: Blocks) -> Element | None:
    """The root of a part that the text can do without; None where it is missing or damaged."""
    try:
        return parse_safely(archive.read(name)) if name in archive else None
    except DocumentError:
        blocks.left_out[reasons.PARTS] += 1
        return None


def _mark_styles(body: Element, sheets: Iterable[Element]) -> None:
    """Mark the elements whose styles raise, hide or strike their text."""
    meanings: dict[str, str] = {}
    for sheet in sheets:
        for style in sheet.iter("{*}style"):
            properties = style.find("{*}text-properties")
            values = markup.attributes(properties) if properties is not None else {}
            position = values.get("text-position", "").split(" ")[0]
            lines = (values.get("text-line-through-style"), values.get("text-line-through-type"))
            if values.get("display") == "none":
                meaning = "hidden"
            elif any(line not in (None, "none") for line in lines):
                meaning = "deleted"
            else:
                meaning = "raised" if position == "super" or re.fullmatch(r"[1-9]\d*%", position) else ""
            own = markup.attributes(style)
            meanings[own.get("name", "")] = meaning or meanings.get(own.get("parent-style-name", ""), "")
    for element in body.iter("{*}span", "{*}p", "{*}h"):
        meaning = meanings.get(markup.attributes(element).get("style-name", ""), "")
        if meaning and (meaning != "raised" or local_name(element) == "span"):
            element.set(_OWN, meaning)


def _levels(style: Element, kind: str) -> dict[int, dict[str, str]]:
    """The properties of the numbered levels of a list style or an outline style."""
    found = (markup.attributes(level) for level in style.iterchildren(f"{{*}}{kind}"))
    return {markup.number_or(values.get("level"), 1): values for values in found if values.get("num-format")}


def _label(levels: Mapping[int, Mapping[str, str]], numbers: Sequence[int]) -> str:
    """The label of the last of the numbers of nested items."""
    own = levels.get(len(numbers))
    if own is None:
        return ""
    places = range(max(0, len(numbers) - markup.number_or(own.get("display-levels"), 1)), len(numbers))
    shown = (numeral(numbers[at], levels.get(at + 1, own)["num-format"]) for at in places if numbers[at])
    return f"{own.get('num-prefix', '')}{'.'.join(shown)}{own.get('num-suffix', '')}"


def _mark_lists(body: Element, sheets: Iterable[Element]) -> None:
    """Write the label of each item of a numbered list into the item; lists can continue others."""
    styles = {markup.attributes(style).get("name", ""): _levels(style, "list-level-style-number")
              for sheet in sheets for style in sheet.iter("{*}list-style")}  # fmt: skip
    last: dict[tuple[str, int], int] = {}  # numbers by style or id of the list, and level
    counts: dict[Element, int] = {}
    for one in body.iter("{*}list-header"):
        one.set(markup.LABEL, "")
    for item in body.iter("{*}list-item") if any(styles.values()) else ():
        lists = list(item.iterancestors("{*}list"))
        of_lists = [markup.attributes(each) for each in lists]
        style = next((values["style-name"] for values in of_lists if values.get("style-name")), "")
        levels = styles.get(style, {})
        if len(lists) not in levels:
            continue
        name = of_lists[0].get("continue-list") or (style if of_lists[0].get("continue-numbering") == "true" else "")
        first = markup.number_or(levels[len(lists)].get("start-value"), 1)
        following = counts.get(lists[0], last.get((name, len(lists)), first - 1)) + 1
        number = markup.number_or(markup.attributes(item).get("start-value"), following)
        for key in (style, of_lists[0].get("id", "")):
            last[key, len(lists)] = number
        counts[lists[0]] = number
        item.set(markup.LABEL, _label(levels, [counts.get(each, 0) for each in reversed(lists)]))


def _mark_headings(body: Element, sheets: Iterable[Element]) -> None:
    """Write the numbers of chapters into their headings."""
    outline = next((style for sheet in sheets for style in sheet.iter("{*}outline-style")), None)
    levels = {} if outline is None else _levels(outline, "outline-level-style")
    counts: dict[int, int] = {}
    for heading in body.iter("{*}h"):
        values = markup.attributes(heading)
        level = _level_of(heading)
        if values.get("is-list-header") == "true":
            continue
        counts[level] = counts.get(level, markup.number_or(levels.get(level, {}).get("start-value"), 1) - 1) + 1
        counts = {above: number for above, number in counts.items() if above <= level}
        shown = _label(levels, [counts.get(above, 0) for above in range(1, level + 1)])
        item = heading.getparent()
        is_first = local_name(item) == "list-item" and heading.getprevious() is None
        cached = words(heading.find("{*}number"))
        heading.set(markup.LABEL, shown or (item.get(markup.LABEL) or "" if is_first else "") or cached)


def _insert_formulas(archive: Archive, body: Element) -> None:
    """Put the formulas of embedded objects in their places."""
    for embedded in list(body.iter("{*}object")):
        name = f"{member_name(markup.attributes(embedded).get('href', ''), '')}/content.xml"
        if len(embedded) or name not in archive:
            continue
        try:
            root = parse_safely(archive.read(name))
        except DocumentError:
            continue
        if local_name(root) == "math":
            embedded.append(root)


def _space(body: Element) -> None:
    """Replace each element that stands for spaces or a tab by one space."""
    for element in body.iter(etree.Element):
        if local_name(element) in _SPACES:
            element.text = " "


def _move_notes(body: Element) -> None:
    """Move the notes of a paragraph behind it, and leave their numbers in brackets in the paragraph."""
    for note in reversed(list(body.iter("{*}note"))):
        paragraph = next((above for above in note.iterancestors() if local_name(above) in _PARAGRAPHS), None)
        text = note.find("{*}note-body")
        if paragraph is None or text is None or paragraph.getparent() is None:
            continue
        number = "" if local_name(paragraph) == "h" else words(note.find("{*}note-citation"))
        tables = [above for above in paragraph.iterancestors("{*}table") if next(above.iter("{*}h"), None) is None]
        paragraph = tables[-1] if tables else paragraph
        text.tag = "note"
        first = text.find("{*}p")
        if first is not None and number:
            first.text = f"[{number}] {first.text or ''}"
        for child in list(note):
            note.remove(child)
        note.text = f"[{number}]" if number else ""
        note.tag = "reference"
        text.tail, paragraph.tail = paragraph.tail, None
        paragraph.addnext(text)


def _titled(body: Element, root: Element) -> str:
    """The first paragraph of style Title, or of one that is based on it."""
    names = {"Title"}
    for style in root.iter("{*}style"):
        values = markup.attributes(style)
        if values.get("parent-style-name") == "Title":
            names.add(values.get("name", ""))
    titled = (p for p in body.iter("{*}p") if markup.attributes(p).get("style-name") in names)
    return rendered(next(titled, None), _GRAMMAR)


def _left_out(element: Element) -> str | None:
    tag, parent = local_name(element), element.getparent()
    if tag == "object" and element.find("{*}math") is not None:
        return None
    if tag == "image" and parent is not None and parent.find("{*}object") is not None:
        return ""  # a picture of the object beside it
    if tag in _REASONS:
        return _REASONS[tag]
    if _DRAWING_WORDS.match(element.tag):
        return ""
    values = markup.attributes(element)
    meaning = values.get(_OWN)
    if meaning in ("hidden", "deleted"):
        return reasons.HIDDEN if meaning == "hidden" else reasons.DELETED
    is_hidden = values.get("display") == "none" or values.get("is-hidden", str(tag == "hidden-text").lower()) == "true"
    is_hidden = is_hidden or (tag in _PARAGRAPHS and _hides(element))
    return reasons.HIDDEN if is_hidden else None


def _hides(paragraph: Element) -> bool:
    """Whether a field hides its paragraph."""
    fields = paragraph.iter("{*}hidden-paragraph")
    return any(markup.attributes(field).get("is-hidden") == "true" for field in fields)


def _is_raised(element: Element) -> bool:
    return bool(element.get(_OWN) == "raised")


def _heading(element: Element) -> HeadingMark | None:
    if local_name(element) != "h":
        return None
    return HeadingMark(_level_of(element), element.get(markup.LABEL) or "")


def _level_of(heading: Element) -> int:
    level = markup.attributes(heading).get("outline-level", "1")
    return int(level) if re.fullmatch(r"[1-9]|10", level) else 1


_BLOCKS = frozenset([
    "bibliography", "index-body", "list", "note", "p", "section", "table", "text", *_SHAPES,
])  # fmt: skip
_GRAMMAR = Grammar(
    blocks=_BLOCKS,
    items=frozenset(["list-item", "list-header"]),
    rows=frozenset(["table-row"]),
    cells=frozenset(["table-cell"]),
    breaks=frozenset(["line-break"]),
    verbatim=frozenset(),
    heading=_heading,
    left_out=_left_out,
    is_raised=_is_raised,
)


def _metadata(meta: Element | None) -> dict[str, MetadataValue]:
    if meta is None:
        return {}
    date = words(meta.find(".//{*}creation-date")) or words(meta.find(".//{*}date"))
    author = words(meta.find(".//{*}initial-creator")) or words(meta.find(".//{*}creator"))
    fields: dict[str, MetadataValue] = {
        "authors": [*authors_of(author)],
        "date": date[:10],
        "year": int(date[:4]) if re.match(r"\d{4}", date) else None,
        "keywords": [words(keyword) for keyword in meta.iter("{*}keyword")],
        "subject": words(meta.find(".//{*}subject")),
        "language": words(meta.find(".//{*}language")),
    }
    return {field: value for field, value in fields.items() if value}
