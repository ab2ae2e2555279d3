"""DOCX (Word): paragraphs, lists, tables, notes and equations in the order of the document; not comments."""

from __future__ import annotations

import email
import io
import posixpath
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from itertools import dropwhile
from typing import Any, TypeAlias

from lxml import etree

from engine.errors import DocumentError
from engine.readers import docx_styles, html
from engine.readers import left_out as reasons
from engine.readers.blocks import Blocks
from engine.readers.docx_styles import BULLET, is_on, qn
from engine.readers.encoding import MAX_CONTAINER_BYTES, Archive, decode, member_name
from engine.readers.fields import authors_of
from engine.readers.markup import local_name, parse_safely, signs, words
from engine.text.cleaning import MAX_DOCUMENT_BYTES, joined_words, one_line, raised, too_large
from engine.text.document import Document, MetadataValue, is_made_up_title
from engine.text.headings import headings_of_lines, title_of_lines

_Element: TypeAlias = Any
MAX_XML_BYTES = 3 * MAX_DOCUMENT_BYTES  # in memory the elements take some ten times as much
# `blip` and `imagedata` are pictures of current and of older versions of Word; shapes with text are read.
_NOT_READ = {
    "blip": reasons.FIGURES,
    "imagedata": reasons.FIGURES,
    "chart": reasons.FIGURES,
    "OLEObject": reasons.OBJECTS,
    "subDoc": reasons.FILES,
    "commentReference": reasons.COMMENTS,
}
_TEXT_LEVEL = 9  # outline level of body text
_MAX_CHUNK_DEPTH = 3  # of imported documents inside imported documents
_CHUNKS = {  # their names can have any suffix
    ".docx": re.compile(rb"^pk\x03\x04"),
    ".mht": re.compile(rb"^mime-version:", re.MULTILINE),
    ".html": re.compile(rb"^\W*<(?:!doctype html|html|body)\b|^\W*<\?xml[^<]*<(?:!doctype html|html)\b"),
}
_STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/(\w+)")
_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_TEXT, _PARAGRAPH, _TABLE, _ROW, _CELL = qn("t"), qn("p"), qn("tbl"), qn("tr"), qn("tc")
_RUN, _CHUNK = qn("r"), qn("altChunk")
_BLOCKS = frozenset([_PARAGRAPH, _TABLE, _CHUNK, *docx_styles.EQUATIONS])
_CHARACTERS = {qn("tab"): "\t", qn("br"): "\n", qn("cr"): "\n", qn("ptab"): "\t", qn("noBreakHyphen"): "\u2011"}
_REFERENCES = {qn(f"{kind}Reference"): kind for kind in ("footnote", "endnote")}
_SKIPPED = frozenset([qn("del"), qn("moveFrom"), qn("pPr"), qn("rPr"), qn("tcPr"), qn("rt"), _FALLBACK])
_CHOICES = ("AlternateContent", "Choice")  # a part for newer programs, beside one for older ones
_CONTAINERS = frozenset([
    *map(qn, ("sdt", "sdtContent", "ins", "moveTo", "customXml")),
    *(_FALLBACK.replace("Fallback", name) for name in _CHOICES),
])  # fmt: skip
_DELETED_ROW = (f"{qn('trPr')}/{qn('del')}", f"{qn('tcPr')}/{qn('cellDel')}")
_DELETED_MARKS = tuple(f"{qn('pPr')}/{qn('rPr')}/{qn(name)}" for name in ("del", "moveFrom"))
_UNREAD = {
    "hidden": reasons.HIDDEN,
    "deleted": reasons.DELETED,
    "prompt": reasons.FORM,
    "contents": reasons.CONTENTS,
    "code": reasons.HIDDEN,  # of a field, which Word replaces by its result
}
_MAX_FIELDS = 50  # inside of each other
_CONTENTS = re.compile(r"\s*(?:TOC|INDEX|TOA)\b")
_SYMBOL = re.compile(r'\s*(\d{1,5}|0x[\dA-Fa-f]{1,4})\b(?:.*\\f\s*"?([^"\\]+))?')
_FORMAT = re.compile(r'\\\*\s*(?:"[^"]*"|\S+)')  # of a field
_EQ_PART = re.compile(r"\\(?P<kind>[a-z])(?P<options>(?:\s*\\[a-z]+\s*-?\d*)*)\s*\((?P<parts>[^()]*)\)")
_MEANING = "longmatch"  # an attribute: what the type of a run means


def read(data: bytes, doc_id: str, source: str) -> Document:
    """Read a Word document as if all its tracked changes were accepted.

    A heading is a paragraph with an outline level, its own or that of its style. The
    title is that of the properties, else the first paragraph of style Title. Footnotes
    and endnotes follow the paragraph or the table that refers to them. A part that is
    missing or damaged is counted; only the main part is needed.
    """
    package, blocks = _Package(data), Blocks()
    writer = _Writer(package, blocks)
    writer.write_all()
    properties = package.related("core-properties", blocks)
    given = {local_name(one): words(one) for one in (() if properties is None else properties.iterchildren("*"))}
    title = given.get("title", "")
    fields: dict[str, MetadataValue] = {"authors": [*authors_of(given.get("creator", ""))]}
    fields |= {name: given.get(name) for name in ("keywords", "subject", "language")}
    metadata = {field: value for field, value in fields.items() if value}
    return blocks.document(doc_id, source, writer.title if is_made_up_title(title) else title, metadata)


def read_tree(root: _Element, doc_id: str, source: str) -> Document:
    """Read a flat Word document, whose parts are in one file."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for part in root.iterchildren("{*}part"):
            content = part.find("{*}xmlData/*")
            if content is not None:
                name = next(value for key, value in part.items() if key.endswith("}name"))
                archive.writestr(name.lstrip("/"), etree.tostring(content, with_tail=False))
    return read(out.getvalue(), doc_id, source)


class _Package:
    """The parts of a Word file, by their relations to the main part."""

    def __init__(self, data: bytes) -> None:
        """Open it."""
        if data.startswith(b"\xd0\xcf\x11\xe0"):
            raise DocumentError("it is encrypted, or a .doc of old; save it as .docx without a password")
        self._archive = Archive(data, "DOCX", MAX_CONTAINER_BYTES)
        if self._archive.size_of((".xml", ".rels")) > MAX_XML_BYTES:
            size = self._archive.size_of((".xml", ".rels"))
            raise too_large("unpacked text with its marks", f"{size:,}", MAX_XML_BYTES)
        self._main = self._targets("").get("officeDocument", ["word/document.xml"])[0]
        if self._main not in self._archive:
            raise DocumentError("it is a zip file but not a Word document; save it as .docx")
        self._relations = self._targets(self._main)
        data = self._archive.read(self._main, MAX_XML_BYTES)
        try:
            bodies = _parse(data).findall(qn("body"))  # some programs write several
        except DocumentError as error:
            raise DocumentError(f"it is a damaged DOCX file ({error}); save it again") from error
        if not bodies:
            raise DocumentError("it is a zip file but not a Word document; save it as .docx")
        for other in bodies[1:]:
            bodies[0].extend(other)
        self.body: _Element = bodies[0]

    def related(self, kind: str, blocks: Blocks) -> _Element | None:
        """The root of the first part of a kind; None where there is none that can be read."""
        return next(self.all_related(kind, blocks), None)

    def all_related(self, kind: str, blocks: Blocks) -> Iterator[_Element]:
        """The roots of the parts of a kind; damaged ones are counted."""
        names = self._relations.get(kind, [])
        if kind == "core-properties":
            names = self._targets("").get(kind, ["docProps/core.xml"])
        for name in names:
            if name not in self._archive:
                continue
            try:
                yield _parse(self._archive.read(name, MAX_XML_BYTES))
            except DocumentError:
                blocks.left_out[reasons.PARTS] += 1

    def part(self, relation: str) -> tuple[str, bytes]:
        """The name and the bytes of a part by the id of its relation; "" for none that can be read."""
        name = next((name for name in self._relations.get(f"#{relation}", [])), "")
        try:
            return name, self._archive.read(name)
        except DocumentError:
            return "", b""

    def _targets(self, part: str) -> dict[str, list[str]]:
        """Names of the parts to which a part refers, by the kind and by the id of the relation."""
        folder, name = posixpath.split(part)
        targets: dict[str, list[str]] = {}
        try:
            root = _parse(self._archive.read(posixpath.join(folder, "_rels", f"{name}.rels")))
        except DocumentError:
            return targets
        for relation in root.iter("{*}Relationship"):
            target = relation.get("Target") or ""
            if relation.get("TargetMode") == "External" or target.startswith("#"):
                continue
            member = member_name(target.lstrip("/"), "" if target.startswith("/") else folder)
            kind = (relation.get("Type") or "").rpartition("/")[2]
            targets.setdefault(kind, []).append(member)
            targets.setdefault(f"#{relation.get('Id')}", []).append(member)
        return targets


def _parse(data: bytes) -> _Element:
    """The root of a part; a part in the strict variant of the standard gets the usual namespaces."""
    is_strict = b"purl.oclc.org/ooxml" in data
    return parse_safely(_STRICT.sub(rb"http://schemas.openxmlformats.org/\1/2006/\2", data) if is_strict else data)


class _Writer:
    def __init__(self, package: _Package, blocks: Blocks, depth: int = 0) -> None:
        self.title = ""
        self._package, self._blocks, self._counts, self._depth = package, blocks, blocks.left_out, depth
        self._styles = docx_styles.Styles(package.related("styles", blocks))
        self._numbering = docx_styles.Numbering(package.related("numbering", blocks))
        self._notes: dict[tuple[str, str], _Element] = {}
        for kind in ("footnote", "endnote"):
            root = package.related(f"{kind}s", blocks)
            for note in root.iterchildren(qn(kind)) if root is not None else ():
                self._notes[kind, note.get(qn("id"), "")] = note
        self._is_after_item = self._is_after_title = False
        self._carried = ""  # the text of a paragraph that the next one continues
        self._centred: dict[_Element, int] = {}  # the levels of headings that no style marks
        self._joined: set[_Element] = set()  # first lines of headings of two paragraphs

    def write_all(self) -> None:
        """Write the body; headers and footers are counted."""
        body = self._package.body
        for part in (body, *self._notes.values()):
            _arrange(part)
            self._read_signs(part)
        for part in (body, *self._notes.values()):
            self._account_for(part)
            self._mark_runs(part)
        for element in body.iter(etree.Element):
            kind = _NOT_READ.get(etree.QName(element).localname)
            if kind is not None:
                self._counts[kind] += 1
        for kind in ("header", "footer"):
            for root in self._package.all_related(kind, self._blocks):
                self._counts[reasons.RUNNING_HEADS] += bool(text_of(root).strip())
        self._mark_centred(list(self._centred_lines(body)))
        for block in _opened(body, _BLOCKS):
            self._write(block)
        self._flush()
        for note in self._notes.values():  # nothing refers to it, so Word does not show it
            self._leave_out(reasons.HIDDEN, text_of(note))

    def _account_for(self, part: _Element) -> None:
        """Note all words of a part, and those that are there twice or for older programs."""
        self._blocks.expect(" ".join(text.text or "" for text in part.iter(_TEXT)))
        for element in part.iter(_FALLBACK, qn("rt"), qn("moveFrom")):
            self._blocks.skip(" ".join(text.text or "" for text in element.iter(_TEXT)))

    def _leave_out(self, reason: str, text: str) -> None:
        self._counts[reason] += len(text.split())
        self._blocks.skip(text)

    def _mark_runs(self, root: _Element) -> None:
        """Mark runs that are hidden, struck or raised; count what is not read."""
        _mark_controls(root)
        _mark_fields(root)
        for run in root.iter(_RUN):
            meaning = run.get(_MEANING) or self._styles.meaning(run)
            if meaning:
                run.set(_MEANING, meaning)
            if meaning in _UNREAD:
                self._leave_out(_UNREAD[meaning], "".join(one.text or "" for one in run.iter(_TEXT)))
        for text in (text for deleted in root.iter(qn("del")) for text in deleted.iter(_TEXT)):
            self._leave_out(reasons.DELETED, text.text or "")
        for element in root.iter(qn("delText"), qn("rt")):
            kind = reasons.READINGS if element.tag == qn("rt") else reasons.DELETED
            self._counts[kind] += len("".join(element.itertext()).split())
        for row in filter(_is_unseen_row, root.iter(_ROW)):
            reason = reasons.DELETED if row.find(_DELETED_ROW[0]) is not None else reasons.HIDDEN
            self._leave_out(reason, " ".join(one.text or "" for one in row.iter(_TEXT)))

    def _read_signs(self, root: _Element) -> None:
        """Write characters of Symbol and Wingdings as text; count those that only their fonts know."""
        for run in root.iter(_RUN):
            fonts = run.find(f"{qn('rPr')}/{qn('rFonts')}")
            for text in run.iterchildren(_TEXT) if fonts is not None else ():
                text.text = signs(text.text or "", fonts.get(qn("ascii")) or fonts.get(qn("hAnsi"), ""))
        for sign in root.iter(qn("sym")):
            code = sign.get(qn("char"), "")
            character = chr(int(code, 16)) if re.fullmatch("[0-9A-Fa-f]{2,4}", code) else "\0"
            character = signs(character, sign.get(qn("font"), ""))
            is_known = character >= " " and not "\ud800" <= character < "\uf900" and character < "\ufffe"
            self._counts[reasons.UNREADABLE] += not is_known
            sign.tag, sign.text = _TEXT, character if is_known else ""

    def _mark_centred(self, lines: list[tuple[_Element, str, bool]]) -> None:
        shown = [(text, bold) for _, text, bold in lines]
        self._blocks.opening = self._blocks.opening or title_of_lines(shown)
        for heading in headings_of_lines(shown):
            paragraph, text, _ = lines[heading.start]
            if heading.title != text:  # it ends in the next paragraph
                self._joined.add(paragraph)
                paragraph = lines[heading.start + 1][0]
            self._centred[paragraph] = heading.level - 1

    def _centred_lines(self, body: _Element) -> Iterator[tuple[_Element, str, bool]]:
        """Each paragraph with its text where it stands in the middle and is no heading by its style, else ""."""
        for paragraph in body.iter(_PARAGRAPH):
            style = _style_of(paragraph)
            runs = [run for run in paragraph.iter(_RUN) if any((text.text or "").strip() for text in run.iter(_TEXT))]
            is_line = (docx_styles.value_of(paragraph, "pPr/jc") or self._styles.look(style, "align")) == "center"
            is_line = is_line and self._heading_level(paragraph, style) is None
            is_line = is_line and "title" not in self._styles.name(style)
            is_line = is_line and next(paragraph.iterancestors(_TABLE), None) is None
            if runs:
                looks = (is_on(run, "rPr/b") for run in runs)
                bold = all(self._styles.look(style, "is_bold") if look is None else look for look in looks)
                yield paragraph, one_line(text_of(paragraph)) if is_line else "", bold

    def _write(self, block: _Element) -> None:
        """Write a paragraph, a table or an imported part, and the notes to which it refers for the first time."""
        if block.tag == _TABLE:
            self._flush()
            self._write_table(block)
            self._is_after_item = False
        elif block.tag == _CHUNK:
            self._flush()
            self._write_chunk(*self._package.part(block.get(_ID, "")))
        elif self._styles.name(_style_of(block)).startswith("toc "):
            self._leave_out(reasons.CONTENTS, text_of(block))
            return
        else:
            self._write_paragraph(block)
        for relations in block.iter("{*}relIds"):
            self._write_diagram(relations)
        for reference in note_references(block):
            note = self._notes.pop(reference, None)
            if note is not None:
                self._blocks.add(text_of(note).strip())
                self._is_after_item = False

    def _write_table(self, table: _Element) -> None:
        """Write the rows of a table; one with headings lays out a page, and its cells are parts of the body."""
        paragraphs = [(paragraph, _style_of(paragraph)) for paragraph in table.iter(_PARAGRAPH)]
        if any(self._heading_level(paragraph, style) is not None for paragraph, style in paragraphs):
            for row in _opened(table, frozenset([_ROW])):
                for cell in _opened(row, frozenset([_CELL])) if not _is_unseen_row(row) else ():
                    for block in _opened(cell, _BLOCKS):
                        self._write(block)
            return
        for paragraph, style in paragraphs:
            label = self._label(paragraph, style) if text_of(paragraph).strip() else None
            if label and label != BULLET:
                run = etree.SubElement(paragraph, _RUN)
                etree.SubElement(run, _TEXT).text = f"{label} "
                paragraph.insert(0, run)
        self._blocks.add("\n".join(rows_of(table)))
        for chunk in table.iter(_CHUNK):
            self._write_chunk(*self._package.part(chunk.get(_ID, "")))

    def _heading_level(self, paragraph: _Element, style: str) -> int | None:
        """The outline level of a heading; None for any other paragraph."""
        level = docx_styles.outline_level(paragraph)
        level = self._styles.level(style) if level is None else level
        level = self._centred.get(paragraph, level)
        return level if level is not None and level < _TEXT_LEVEL else None

    def _write_chunk(self, name: str, data: bytes) -> None:
        """Write an imported document; one of another format is counted."""
        head = data[:1_000].lower()
        kinds = (kind for kind, pattern in _CHUNKS.items() if pattern.search(head))
        suffix = next(kinds, posixpath.splitext(name)[1].lower())
        try:
            if not data:
                raise DocumentError("it is missing")
            if suffix in (".mht", ".mhtml"):
                pages = [
                    part for part in email.message_from_bytes(data).walk() if part.get_content_type() == "text/html"
                ]
                data = bytes(pages[0].get_payload(decode=True) or b"") if pages else b""
                suffix = ".html" if pages else ""
            if suffix in (".html", ".htm", ".xhtml"):
                html.add_page(data, self._blocks)
            elif suffix == ".txt":
                self._blocks.add(decode(data))
            elif suffix in (".docx", ".docm", ".dotx") and self._depth < _MAX_CHUNK_DEPTH:
                _Writer(_Package(data), self._blocks, self._depth + 1).write_all()
            else:
                self._counts[reasons.OBJECTS] += 1
        except DocumentError:
            self._counts[reasons.PARTS] += 1

    def _write_diagram(self, relations: _Element) -> None:
        """Write the labels of a diagram (SmartArt)."""
        for name, relation in relations.items():
            if name.endswith("}dm"):
                try:
                    root = _parse(self._package.part(relation)[1])
                except DocumentError:
                    self._counts[reasons.PARTS] += 1
                    continue
                lines = root.iterfind(f".//{{*}}pt//{_DRAWING}p")
                texts = ("".join(text.text or "" for text in line.iter(f"{_DRAWING}t")) for line in lines)
                self._blocks.add("\n".join(filter(None, map(one_line, texts))))

    def _flush(self) -> None:
        """Write the text of a last paragraph that nothing continues."""
        self._blocks.add(self._carried.strip())
        self._carried = ""

    def _write_paragraph(self, paragraph: _Element) -> None:
        text = self._carried + text_of(paragraph)
        self._carried = ""
        if paragraph in self._joined or _is_continued(paragraph):
            self._carried = f"{text} " if paragraph in self._joined else text
            return
        text = joined_words(text) if "\n" in text else text
        style = _style_of(paragraph)
        name = self._styles.name(style)
        is_title = self._styles.look(style, "is_title") is True or name == "title"
        if is_title and (not self.title or self._is_after_title):
            self.title = one_line(f"{self.title} {text}")
        self._is_after_title = is_title
        level = self._heading_level(paragraph, style)
        label = self._label(paragraph, style) if text.strip() else None
        if label is None and name.startswith("list "):
            label = BULLET
        is_item = label is not None and level is None
        if level is not None:
            number = label if label and label != BULLET else ""
            self._blocks.add_heading(f"{number} {text}", level + 1)
        elif text.strip():
            separator = "\n" if is_item and self._is_after_item else "\n\n"
            self._blocks.add(f"{label} {text.strip()}".strip() if is_item else text.rstrip(), separator)
        self._is_after_item = is_item

    def _label(self, paragraph: _Element, style: str) -> str | None:
        """The number or bullet of a paragraph; None where it is in no list."""
        (own_id, own_level), (style_id, style_level) = docx_styles.number_of(paragraph), self._styles.number(style)
        num_id, level = own_id or style_id, style_level if own_level is None else own_level
        if num_id is None or num_id == "0":
            return None
        if level is None:
            level = self._numbering.level_of_style(num_id, style)
        return self._numbering.label(num_id, min(level, docx_styles.N_LEVELS - 1))


def _arrange(root: _Element) -> None:
    """Put text boxes behind their paragraphs, and what fields and parts for older programs show into the text."""
    for path in root.iter("{*}textpath"):
        run = next(path.iterancestors(_RUN), None)
        if run is not None:
            etree.SubElement(run, _TEXT).text = path.get("string")
    for body in root.iter(f"{_DRAWING}txBody"):
        for element in body.iter(*(f"{_DRAWING}{name}" for name in ("p", "r", "t", "br", "fld"))):
            element.tag = _RUN if element.tag == f"{_DRAWING}fld" else qn(etree.QName(element).localname)
        body.tag = qn("txbxContent")
    for fallback in list(root.iter(_FALLBACK)):
        if len(fallback.getparent()) == 1:
            fallback.tag = qn("smartTag")
    for box in reversed(list(root.iter(qn("txbxContent")))):
        paragraph = next(box.iterancestors(_PARAGRAPH), None)
        if paragraph is None or next(box.iterancestors(_FALLBACK), None) is not None or not text_of(box).strip():
            continue
        _take_out(box, paragraph)


def _take_out(box: _Element, paragraph: _Element) -> None:
    """Put a text box behind its paragraph, or an initial before the rest of its word."""
    blocks, initial = list(box), text_of(box).strip()
    for block in blocks:
        box.remove(block)
    if _begins(initial, text_of(paragraph)):
        paragraph.insert(0, run := etree.Element(_RUN))
        etree.SubElement(run, _TEXT).text = initial
        return
    for block in reversed(blocks):
        paragraph.addnext(block)


def _begins(initial: str, text: str) -> bool:
    """Whether a letter that stands by itself is the first of a word of the text beside it."""
    initial = initial.strip()
    return len(initial) == 1 and initial.isupper() and text.lstrip()[:1].islower()


def _chosen(field: _Element) -> str:
    """The entry of a list, or the sign of a box, that a field of a form shows; "" for other fields."""
    choice = next(field.iter(qn("ddList"), qn("checkBox")), None)
    if choice is None:
        return ""
    if choice.tag == qn("checkBox"):
        is_checked = is_on(choice, "checked")
        return "\u2612" if (is_on(choice, "default") if is_checked is None else is_checked) else "\u2610"
    entries = [entry.get(qn("val"), "") for entry in choice.iter(qn("listEntry"))]
    place = next((one.get(qn("val"), "") for one in choice.iter(qn("result"), qn("default"))), "0")
    return entries[int(place)] if place.isdecimal() and int(place[:6]) < len(entries) else ""


def _mark_controls(root: _Element) -> None:
    """Mark the runs of content controls that show a prompt or a table of contents."""
    for mark in root.iter(qn("showingPlcHdr"), qn("docPartGallery")):
        control = next(mark.iterancestors(qn("sdt")), None)
        meaning = "prompt" if mark.tag == qn("showingPlcHdr") else "contents"
        is_meant = meaning == "prompt" or mark.get(qn("val"), "").startswith("Table of")
        for run in control.iter(_RUN) if control is not None and is_meant else ():
            run.set(_MEANING, meaning)


def _mark_fields(root: _Element) -> None:
    """Mark the runs of tables of contents, and those of fields inside of the codes of others."""
    fields: list[_Field] = []
    for run in root.iter(_RUN):
        for part in run:
            kind = part.get(qn("fldCharType")) if part.tag == qn("fldChar") else ""
            if kind == "begin" and len(fields) < _MAX_FIELDS:
                fields.append(_Field(_chosen(part)))
            elif kind == "end" and fields:
                field = fields.pop()
                field.mark()
                if not any(text.text for result in field.result for text in result.iter(_TEXT)):
                    etree.SubElement(run, _TEXT).text = field.shown or _shown_by(field.code)
            elif fields and (kind == "separate" or part.tag == qn("instrText")):
                fields[-1].is_result |= kind == "separate"
                fields[-1].code += part.text or ""
        for field in fields:
            (field.result if field.is_result else field.inside).append(run)


@dataclass
class _Field:
    """A field and its runs, which are marked only where it ends: a damaged file can lack the end."""

    shown: str  # where its result has no text
    code: str = ""
    is_result: bool = False
    inside: list[_Element] = dataclass_field(default_factory=list)  # of its code
    result: list[_Element] = dataclass_field(default_factory=list)

    def mark(self) -> None:
        for run in self.inside:
            run.set(_MEANING, "code")
        for run in self.result if _CONTENTS.match(self.code) else ():
            run.set(_MEANING, "contents")


def _shown_by(code: str) -> str:
    """The text of a field that shows its code: a formula of old, a sign or a prompt; "" for other fields."""
    kind, _, rest = code.strip().partition(" ")
    if kind.upper() == "SYMBOL" and (match := _SYMBOL.match(rest)):
        return signs(chr(int(match[1], 0)), match[2] or "")
    if kind.upper() == "MACROBUTTON":
        return rest.strip().partition(" ")[2]
    text, n_parts = _FORMAT.sub("", rest) if kind.upper() == "EQ" else "", 1
    while n_parts:
        text, n_parts = _EQ_PART.subn(_part_of_formula, text)
    return text.strip()


def _part_of_formula(match: re.Match[str]) -> str:
    """A part of a formula of old; one that stands above another is its reading."""
    parts = re.split("[,;]", match["parts"])
    if match["kind"] == "f":
        return "/".join(parts)
    if match["kind"] == "o":
        return "".join(part for part in parts if not part.startswith("^"))
    mark = {"r": "\u221a", "s": "^" if "up" in match["options"] else "_"}.get(match["kind"], "")
    return mark + ", ".join(parts)


def _style_of(paragraph: _Element) -> str:
    return docx_styles.value_of(paragraph, "pPr/pStyle") or ""


def _is_continued(paragraph: _Element) -> bool:
    """Whether the next paragraph continues this one: it is an initial in a frame, or its mark was deleted."""
    frame = paragraph.find(f"{qn('pPr')}/{qn('framePr')}")
    is_initial = frame is not None and frame.get(qn("dropCap"), "none") != "none"
    if frame is not None and not is_initial:
        following = paragraph.getnext()
        is_initial = following is not None and _begins(text_of(paragraph), text_of(following))
    return is_initial or any(paragraph.find(mark) is not None for mark in _DELETED_MARKS)


def rows_of(table: _Element) -> Iterator[str]:
    """Each row of a table on one line; a table inside a cell is part of the cell."""
    for row in _opened(table, frozenset([_ROW])):
        if not _is_unseen_row(row):
            cells = (cell for cell in _opened(row, frozenset([_CELL])) if cell.find(_DELETED_ROW[1]) is None)
            texts = (one_line(text_of(cell)) for cell in cells)
            yield " | ".join(dropwhile(lambda text: not text, texts))


def text_of(root: _Element) -> str:
    """The text of a paragraph, a cell or a note; paragraphs inside it are lines."""
    parts: list[str] = []
    todo = [root]
    is_raised = False  # whether the last text is a superscript
    while todo:
        node = todo.pop()
        tag = node.tag
        meaning = node.get(_MEANING) if tag == _RUN else None
        if tag == _TEXT:
            parts.append(node.text or "")
            is_raised = False
        elif meaning == "raised" and node is not root:
            text = text_of(node)
            parts.append(text if is_raised else raised("".join(parts[-3:])[-8:], text))
            is_raised = is_raised or bool(text.strip())
        elif tag in _CHARACTERS:
            parts.append(_CHARACTERS[tag])
        elif tag in docx_styles.EQUATIONS:
            parts.append(docx_styles.equation_text(node))
        elif tag not in _SKIPPED and meaning not in _UNREAD and not _is_unseen_row(node):
            if tag == _PARAGRAPH and node is not root and parts:
                parts.append("\n")
            todo.extend(reversed(node))
    return "".join(parts)


def note_references(block: _Element) -> Iterator[tuple[str, str]]:
    """(kind, id) of the notes to which a paragraph or a table refers, in order; kind is footnote or endnote."""
    todo = [block]
    while todo:
        node = todo.pop()
        if node.tag in _REFERENCES:
            yield _REFERENCES[node.tag], node.get(qn("id"), "")
        elif node.tag not in _SKIPPED and not _is_unseen_row(node):
            todo.extend(reversed(node))


def _is_unseen_row(node: _Element) -> bool:
    return node.tag == _ROW and (node.find(_DELETED_ROW[0]) is not None or is_on(node, "trPr/hidden") is True)


def _opened(parent: _Element, wanted: frozenset[str]) -> Iterator[_Element]:
    """The elements of some kinds under another, in order; controls and other containers are opened."""
    todo = list(reversed(parent))
    while todo:
        node = todo.pop()
        if node.tag in wanted:
            yield node
        elif node.tag in _CONTAINERS:
            todo.extend(reversed(node))
