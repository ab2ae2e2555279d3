"""ODT (OpenDocument text): headings, paragraphs, lists, tables and notes; not contents, comments and changes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lxml import etree

from engine.errors import DocumentError
from engine.readers import left_out as reasons
from engine.readers import markup
from engine.readers.blocks import Blocks
from engine.readers.encoding import Archive, member_name
from engine.readers.fields import authors_of
from engine.readers.markup import Element, Grammar, HeadingMark, local_name, parse_safely, rendered, words, write
from engine.text.document import Document, MetadataValue, is_made_up_title
from engine.text.headings import headings_of_lines, numeral, title_of_lines

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
    root, blocks = parse_safely(archive.read("content.xml")), Blocks()
    _insert_formulas(archive, root, blocks)
    parts = {name: _part(archive, name, blocks) for name in ("styles.xml", "meta.xml")}
    whole = etree.Element("document")  # as a flat file has all parts
    whole.extend([part for part in (*parts.values(), root) if part is not None])
    return read_tree(whole, doc_id, source, blocks)


def read_tree(root: Element, doc_id: str, source: str, blocks: Blocks | None = None) -> Document:
    """Read a flat OpenDocument text, whose parts are in one file."""
    body, blocks = root.find(".//{*}body/{*}text"), blocks or Blocks()
    if body is None:
        raise DocumentError("it is not an OpenDocument text; save it as .odt")
    blocks.expect(markup.all_text(body))
    for element in body.iter("{*}s", "{*}tab"):
        element.text = " "
    titles = {"Title"} | {
        markup.attributes(style).get("name", "")
        for style in root.iter("{*}style")
        if markup.attributes(style).get("parent-style-name") == "Title"
    }
    titled: list[Element] = []
    for line in body.iter("{*}p"):
        if markup.attributes(line).get("style-name") in titles and (not titled or line.getprevious() is titled[-1]):
            titled.append(line)
    lines = _mark_styles(body, root, blocks)
    _mark_lists(body, root)
    _mark_headings(body, root)
    shown = [(text, is_bold) for _, text, is_bold in lines]
    blocks.opening = title_of_lines(shown)
    for heading in headings_of_lines(shown):
        line, text, _ = lines[heading.start]
        if line not in titled:
            if heading.title != text:
                markup.join_blocks(line, lines[heading.start + 1][0])
            line.tag, line.attrib["outline-level"] = f"{line.tag[:-1]}h", str(heading.level)
    markup.lift(body, _SHAPES, _PARAGRAPHS)
    _move_notes(body)
    write(body, _GRAMMAR, blocks)
    parts = root.iter(*(f"{{*}}{kind}{place}" for kind in ("header", "footer") for place in ("", "-left", "-first")))
    blocks.left_out[reasons.RUNNING_HEADS] += sum(markup.n_words(part) > 0 for part in parts)
    meta = root.find(".//{*}meta")
    title = "" if meta is None else words(meta.find("{*}title"))
    if is_made_up_title(title):
        title = " ".join(filter(None, (rendered(line, _GRAMMAR) for line in titled))) or title
    return blocks.document(doc_id, source, title, _metadata(meta))


def _part(archive: Archive, name: str, blocks: Blocks) -> Element | None:
    """The root of a part that the text can do without; None where it is missing or damaged."""
    try:
        return parse_safely(archive.read(name)) if name in archive else None
    except DocumentError:
        blocks.left_out[reasons.PARTS] += 1
        return None


def _mark_styles(body: Element, root: Element, blocks: Blocks) -> list[tuple[Element, str, bool]]:
    """Mark the elements whose styles raise, hide or strike their text; returns the lines of `headings_of_lines`."""
    looks: dict[str, dict[str, str]] = {}
    for style in root.iter("{*}style"):
        own = markup.attributes(style)
        values = dict(looks.get(own.get("parent-style-name", ""), {}))
        for properties in style.iterchildren("{*}paragraph-properties", "{*}text-properties"):
            values |= markup.attributes(properties)
        looks[own.get("name", "")] = values
    lines: list[tuple[Element, str, bool]] = []
    for element in body.iter("{*}span", "{*}p", "{*}h"):
        look, tag = looks.get(markup.attributes(element).get("style-name", ""), {}), local_name(element)
        meaning = _meaning(look)
        if meaning and (meaning != "raised" or tag == "span"):
            element.set(_OWN, meaning)
        if element.text and re.search("[\uf000-\uf0ff]", element.text):
            blocks.skip(element.text)
            element.text = markup.signs(element.text, look.get("font-name") or look.get("font-family") or "")
        if tag != "span" and (text := words(element)):
            spans = [looks.get(markup.attributes(one).get("style-name", ""), {}) for one in element.iter("{*}span")]
            is_plain = (element.text or "").strip() != "" or not spans
            is_bold = all(one.get("font-weight") == "bold" for one in ([look] if is_plain else spans))
            is_line = look.get("text-align") == "center" and tag == "p"
            is_line = is_line and next(element.iterancestors("{*}table", "{*}list"), None) is None
            lines.append((element, text if is_line else "", is_bold))
    return lines


def _meaning(look: Mapping[str, str]) -> str:
    lines = (look.get("text-line-through-style"), look.get("text-line-through-type"))
    position = look.get("text-position", "").split(" ")[0]
    if look.get("display") == "none":
        return "hidden"
    if any(line not in (None, "none") for line in lines):
        return "deleted"
    return "raised" if position == "super" or re.fullmatch(r"[1-9]\d*%", position) else ""


def _levels(style: Element, kind: str) -> dict[int, dict[str, str]]:
    """The properties of the numbered levels of a list style or an outline style."""
    found = (markup.attributes(level) for level in style.iterchildren(f"{{*}}{kind}"))
    return {markup.number_or(values.get("level"), 1): values for values in found if values.get("num-format")}


def _next_label(
    levels: Mapping[int, Mapping[str, str]], counts: dict[int, int], level: int, start: str | None = None
) -> str:
    """Count one paragraph of a level, and start the levels below again; returns its label."""
    first = markup.number_or(levels.get(level, {}).get("start-value"), 1)
    counts[level] = markup.number_or(start, counts.get(level, first - 1) + 1)
    for below in [one for one in counts if one > level]:
        del counts[below]
    own = levels.get(level)
    if own is None:
        return ""
    places = range(max(1, level + 1 - markup.number_or(own.get("display-levels"), 1)), level + 1)
    shown = (numeral(counts[at], levels.get(at, own)["num-format"].split(",")[0]) for at in places if counts.get(at))
    return f"{own.get('num-prefix', '')}{'.'.join(shown)}{own.get('num-suffix', '')}"


def _mark_lists(body: Element, root: Element) -> None:
    """Write the label of each item of a numbered list into the item; lists can continue others."""
    styles = {markup.attributes(style).get("name", ""): _levels(style, "list-level-style-number")
              for style in root.iter("{*}list-style")}  # fmt: skip
    by_id: dict[str, dict[int, int]] = {}  # numbers of paragraphs that are numbered outside of lists
    for paragraph in body.iter("{*}numbered-paragraph"):
        values = markup.attributes(paragraph)
        levels, counted = styles.get(values.get("style-name", ""), {}), by_id.setdefault(values.get("list-id", ""), {})
        label = _next_label(levels, counted, markup.number_or(values.get("level"), 1), values.get("start-value"))
        paragraph.set(markup.LABEL, words(paragraph.find("{*}number")) or label)
    last: dict[str, dict[int, int]] = {}  # numbers by the style and by the id of a list
    counts: dict[Element, dict[int, int]] = {}  # of each outermost list
    for one in body.iter("{*}list-header"):
        one.set(markup.LABEL, "")
    for item in body.iter("{*}list-item") if any(styles.values()) else ():
        lists = [markup.attributes(each) for each in item.iterancestors("{*}list")]
        *_, outermost = item.iterancestors("{*}list")
        style = next((values["style-name"] for values in lists if values.get("style-name")), "")
        if len(lists) not in styles.get(style, {}):
            continue
        if outermost not in counts:
            own = lists[-1]
            name = own.get("continue-list") or (style if own.get("continue-numbering") == "true" else "")
            counts[outermost] = last[style] = last[own.get("id", style)] = last.get(name, {}) if name else {}
        if local_name(next(item.iterchildren(etree.Element), item)) != "list":  # else it continues one above
            start = markup.attributes(item).get("start-value")
            item.set(markup.LABEL, _next_label(styles[style], counts[outermost], len(lists), start))


def _mark_headings(body: Element, root: Element) -> None:
    """Write the numbers of chapters into their headings."""
    outline = next(root.iter("{*}outline-style"), None)
    levels = {} if outline is None else _levels(outline, "outline-level-style")
    counts: dict[int, int] = {}
    for heading in body.iter("{*}h"):
        values = markup.attributes(heading)
        level = _level_of(heading)
        if values.get("is-list-header") == "true":
            continue
        shown = _next_label(levels, counts, level)
        item = heading.getparent()
        kind = local_name(item)
        is_first = kind == "numbered-paragraph" or (kind == "list-item" and heading.getprevious() is None)
        cached = words(heading.find("{*}number"))
        heading.set(markup.LABEL, shown or (item.get(markup.LABEL) or "" if is_first else "") or cached)


def _insert_formulas(archive: Archive, body: Element, blocks: Blocks) -> None:
    """Put the formulas of embedded objects in their places."""
    for embedded in list(body.iter("{*}object")):
        name = f"{member_name(markup.attributes(embedded).get('href', ''), '')}/content.xml"
        if len(embedded) or name not in archive:
            continue
        root = _part(archive, name, blocks)
        if root is not None and local_name(root) == "math":
            embedded.append(root)


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


def _left_out(element: Element, tag: str) -> str | None:
    parent = element.getparent()
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
    fields = element.iter("{*}hidden-paragraph") if tag in _PARAGRAPHS else ()
    is_hidden = is_hidden or any(markup.attributes(field).get("is-hidden") == "true" for field in fields)
    return reasons.HIDDEN if is_hidden else None


def _heading(element: Element, tag: str) -> HeadingMark | None:
    return HeadingMark(_level_of(element), element.get(markup.LABEL) or "") if tag == "h" else None


def _level_of(heading: Element) -> int:
    level = markup.attributes(heading).get("outline-level", "1")
    return int(level) if re.fullmatch(r"[1-9]|10", level) else 1


_BLOCKS = frozenset([
    "bibliography", "index-body", "list", "note", "p", "section", "table", "text", *_SHAPES,
])  # fmt: skip
_GRAMMAR = Grammar(
    blocks=_BLOCKS,
    items=frozenset(["list-item", "list-header", "numbered-paragraph"]),
    rows=frozenset(["table-row"]),
    cells=frozenset(["table-cell"]),
    breaks=frozenset(["line-break"]),
    verbatim=frozenset(),
    heading=_heading,
    left_out=_left_out,
    is_raised=lambda element, _: bool(element.get(_OWN) == "raised"),
)


def _metadata(meta: Element | None) -> dict[str, MetadataValue]:
    if meta is None:
        return {}
    date = words(meta.find("{*}creation-date")) or words(meta.find("{*}date"))
    author = words(meta.find("{*}initial-creator")) or words(meta.find("{*}creator"))
    fields: dict[str, MetadataValue] = {
        "authors": [*authors_of(author)],
        "date": date[:10],
        "year": int(date[:4]) if re.match(r"\d{4}", date) else None,
        "keywords": [words(keyword) for keyword in meta.iter("{*}keyword")],
        "subject": words(meta.find("{*}subject")),
        "language": words(meta.find("{*}language")),
    }
    return {field: value for field, value in fields.items() if value}
