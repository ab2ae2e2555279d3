"""PDF: running text in pdfium's reading order, floats behind their paragraphs. Reads the text layer; does no OCR."""

from __future__ import annotations

import math
import re
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from ctypes import POINTER, c_float, c_ushort, cast, create_string_buffer
from dataclasses import dataclass, field, replace
from functools import partial
from html import unescape
from itertools import islice, pairwise, takewhile
from typing import Any, TypeAlias

import pypdfium2
import pypdfium2.raw as pdfium

from engine.errors import DocumentError
from engine.readers import left_out as reasons
from engine.readers import pdf_layout
from engine.readers.blocks import n_lost
from engine.readers.fields import authors_of, case_fields, case_name
from engine.readers.pdf_headings import (
    HeadingLines,
    OutlineEntry,
    by_outline,
    by_type,
    title_behind_cover,
    with_unnumbered,
)
from engine.readers.pdf_lines import Line, lines_of, n_mapped_wrongly
from engine.readers.text import STAMP
from engine.text.cleaning import MAX_DOCUMENT_BYTES, too_large, vocabulary
from engine.text.document import SCANNED_PAGES, Document, MetadataValue, assemble, is_made_up_title
from engine.text.segmentation import Heading


class Flow:
    """Text that grows paragraph by paragraph."""

    def __init__(self, lines: Sequence[Line], headings: Mapping[int, HeadingLines]) -> None:
        self.headings: list[Heading] = []
        self._lines = lines
        self._known = vocabulary("\n".join(line.text for line in lines))
        self._size = pdf_layout.body_size(lines)
        self._pitch = pdf_layout.pitch_of(lines, self._size)
        self._edges = pdf_layout.right_edges(lines)
        self._inside_words = pdf_layout.inside_words(lines)
        self._parts: list[str] = []
        self._n_chars = 0
        self._page_starts: dict[int, int] = {}
        paragraphs = floats_last(self._paragraphs(headings), lines, self._edges, self._size, frozenset(headings))
        for place, paragraph in enumerate(paragraphs):
            heading = headings.get(paragraph[0])
            if heading is not None:
                title = " ".join(line.text for line in lines[heading.first : heading.stop])
                self.headings.append(Heading(title.replace("\u00ad", ""), heading.level, self._n_chars))
            self._parts.append(self._joined(paragraph) + ("\n\n" if place + 1 < len(paragraphs) else ""))
            self._n_chars += len(self._parts[-1])

    @property
    def text(self) -> str:
        """The paragraphs, with a blank line between them."""
        return "".join(self._parts)

    def pages(self, n_pages: int) -> tuple[int, ...]:
        """Offset of each page; a page without text starts where the next one does."""
        starts, following = [], self._n_chars
        for page in reversed(range(n_pages)):
            following = min(following, self._page_starts.get(page, following))
            starts.append(following)
        return (0, *reversed(starts[:-1])) if starts else ()

    def _paragraphs(self, headings: Mapping[int, HeadingLines]) -> list[range]:
        starts: list[int] = []
        stop, n_chars = 0, 0
        for number, line in enumerate(self._lines):
            is_first = number in headings or number == stop
            stop = headings[number].stop if number in headings else stop
            if is_first or (number > stop and (n_chars > MAX_PARAGRAPH_CHARS or self._starts_paragraph(number))):
                starts.append(number)
                n_chars = 0
            n_chars += len(line.text) + 1
        return [range(start, stop) for start, stop in zip(starts, [*starts[1:], len(self._lines)], strict=True)]

    def _starts_paragraph(self, number: int) -> bool:
        return number - 1 not in self._inside_words and pdf_layout.starts_paragraph(
            self._lines[number - 1], self._lines[number], self._pitch, self._edges[number - 1]
        )

    def _joined(self, paragraph: Sequence[int]) -> str:
        text = ""
        for place, number in enumerate(paragraph):
            line = self._lines[number]
            before = paragraph[place - 1]
            if not place:
                text = line.text
            elif before in self._inside_words:
                text += line.text
            elif pdf_layout.breaks_line(self._lines[before], self._edges[before]):
                text += "\n" + line.text
            else:
                text = pdf_layout.joined(text, line.text, self._known)
            self._page_starts.setdefault(line.page, self._n_chars + len(text) - len(line.text))
        return text.replace("\u00ad", "-")


MAX_PARAGRAPH_CHARS = 8_000  # a longer one is not joined any further
_MAX_PARAGRAPHS = 12  # between the halves of a sentence
_SAME_SIZE = 0.03  # times the body size
_SHORT = 4.0  # times the type size; a line that ends this close to the edge is full
_NARROW = 0.6  # of the column; labels and cells are narrower
_CAPTION = re.compile(r"(?:fig(?:ure|\.)?|tab(?:le|\.)?|algorithm|listing|scheme|plate)\s*[\dIVXA-Z]", re.IGNORECASE)
_NOTE = re.compile(r"[\[(]?(?:\d{1,3}|[*\u2020\u2021\u00a7]{1,3})[\]).]?\s+\W?[^\W\d_]{2}")
_HYPHENS = "-\u00ad\u2010"
_GOES_ON = re.compile(r"[^\W\d_]+[,.;:)]*(?:\s|$)")  # a word, no formula
_OPEN_END = re.compile(r"(?:[^\W\d_][,\u00ad\u2010-]?|,)$")  # no full stop


def floats_last(
    paragraphs: Sequence[range], lines: Sequence[Line], edges: Sequence[float], size: float, headings: frozenset[int]
) -> list[list[int]]:
    """Join the halves of an interrupted paragraph, and put the interruption after it. Every line stays, once."""
    ordered: list[list[int]] = []
    number = 0
    while number < len(paragraphs):
        is_heading = paragraphs[number].start in headings
        whole, floating = list(paragraphs[number]), list[list[int]]()
        number += 1
        while not is_heading and sum(len(lines[place].text) for place in whole) <= MAX_PARAGRAPH_CHARS:
            ahead = paragraphs[number : number + _MAX_PARAGRAPHS]
            ahead = list(takewhile(lambda paragraph: paragraph.start not in headings, ahead))
            rest = _rest(ahead, whole[-1], lines, edges, size)
            if rest is None:
                break
            floating.extend(map(list, ahead[:rest]))
            whole.extend(ahead[rest])
            number += rest + 1
        ordered.extend([whole, *floating])
    return ordered


def _rest(ahead: Sequence[range], last: int, lines: Sequence[Line], edges: Sequence[float], size: float) -> int | None:
    """Which of the paragraphs ahead continues the open sentence of line `last`; None without one."""
    before = lines[last]
    is_full = before.right >= edges[last] - _SHORT * before.size
    if " " not in before.text or not _is_body(before, size) or not _OPEN_END.search(before.text):
        return None
    for number, paragraph in enumerate(ahead):
        line = lines[paragraph.start]
        is_narrow = all(
            lines[place].right < lines[place].left + _NARROW * (edges[place] - line.left) for place in paragraph
        )
        notes = [lines[other.start] for other in ahead[:number]]
        goes_on = is_full or (line.text[0].islower() and all(note.size < before.size for note in notes))
        if goes_on and _is_turn_of_page(before, line, notes, size):
            return number
        if not _is_body(line, size):
            continue
        if not is_full:
            return None
        if line.text[0].islower() and _GOES_ON.match(line.text) and (not is_narrow or len(paragraph) == 1):
            return number
        is_note = line.page == before.page and _NOTE.match(line.text)
        if not is_narrow and not is_note and not _CAPTION.match(line.text):
            return None
    return None


def _is_turn_of_page(before: Line, line: Line, between: Sequence[Line], size: float) -> bool:
    """Whether only notes under the text stand between a line and one of the next page."""
    return (
        line.page == before.page + 1
        and _is_body(line, size)
        and line.left < before.left + 0.7 * size
        and bool(between)
        and before.text[-1] not in _HYPHENS
        and all(other.page == before.page and _NOTE.match(other.text) and other.y < before.y for other in between)
    )


def _is_body(line: Line, size: float) -> bool:
    return abs(line.size - size) <= _SAME_SIZE * size


_Pdf: TypeAlias = Any
_ONE_AT_A_TIME = threading.Lock()  # pdfium may not be called from two threads
_MAX_OUTLINE = 5_000
_MAX_PAGES = 10_000
_LINES_OF_CAPTION, _MAX_PARTY, _MARGIN = 40, 100, 80.0  # lines; characters; points
_MAX_PAGE_CHARS = 1_000_000
_MAX_PAGE_OBJECTS = 100_000  # of a page, that are searched for pictures
_MAX_ANNOTATIONS, _MAX_VALUE_BYTES = 10_000, 200_000  # of a page, and of a value
_WRITTEN = frozenset([pdfium.FPDF_FORMFIELD_TEXTFIELD, pdfium.FPDF_FORMFIELD_COMBOBOX, pdfium.FPDF_FORMFIELD_LISTBOX])
_PASSWORD = 1 << 13  # the flag of a field of text
_TICKED = (pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON)
_MARKS = frozenset(
    [
        pdfium.FPDF_ANNOT_TEXT, pdfium.FPDF_ANNOT_HIGHLIGHT, pdfium.FPDF_ANNOT_UNDERLINE, pdfium.FPDF_ANNOT_SQUIGGLY,
        pdfium.FPDF_ANNOT_STRIKEOUT, pdfium.FPDF_ANNOT_CARET, pdfium.FPDF_ANNOT_INK, pdfium.FPDF_ANNOT_SQUARE,
        pdfium.FPDF_ANNOT_CIRCLE,
    ]
)  # fmt: skip
_COLUMN = 3.0  # times its width, at least, is the height of a column of vertical writing
_SHARE_OF_COLUMNS, _SHARE_TURNED = 0.6, 0.9  # of the texts of a page
_BETWEEN_COLUMNS = re.compile(r"(?<=[^\x00-\u2fff]) (?=[^\x00-\u2fff])")
_SHARE_SILENT, _SHARE_UNREADABLE = 0.5, 0.1  # of the characters that are read
_MIN_PAGE_CHARS = 100  # a page of print has thousands
_SHARE_OF_PICTURES, _SHARE_OF_SHAPES = 0.5, 0.3  # of the area of a scanned page, at least
_PICTURES = (pdfium.FPDF_PAGEOBJ_IMAGE, pdfium.FPDF_PAGEOBJ_FORM)
_OCR_PROGRAM = "ocrmypdf"  # begins the creator of the files that it writes
_BETWEEN_WORDS = re.compile(  # hyphens of pdfium, private signs, letters from right to left, which are set in order
    "[\ufffe\x02\u00ad\ue000-\uf8ff\U000f0000-\U0010ffff\u0590-\u08ff\ufb1d-\ufeff]|(?<=[^\\W\\d_])(?=\\d)|(?<=\\d)(?=[^\\W\\d_])"
)
_DOUBLED = re.compile("([\U00010000-\U0010ffff])\\1")  # by a font that maps a sign to itself twice
_OF_WINDOWS = re.compile("[\x80-\x9f]")
_NO_TITLE = re.compile(r"microsoft |\S+$", re.IGNORECASE)


@dataclass(slots=True)
class _Extract:
    """The contents that pdfium finds in a file."""

    lines: list[Line] = field(default_factory=list)
    outline: list[OutlineEntry] = field(default_factory=list)
    properties: dict[str, str] = field(default_factory=dict)
    n_pages: int = 0
    n_unreadable: int = 0  # characters that cannot be decoded
    n_pictures: int = 0
    hides_text: bool = False  # maybe, in large shapes, or in shapes as many as letters
    damaged_pages: list[int] = field(default_factory=list)  # from 1
    scanned_pages: set[int] = field(default_factory=set)  # from 1, that OCR may read
    turned: list[str] = field(default_factory=list)  # lines along the margin, that are left out
    readings: list[str] = field(default_factory=list)  # above Han characters, that are left out
    hidden: list[str] = field(default_factory=list)  # lines outside of the page
    n_comments: int = 0
    characters: list[str] = field(default_factory=list)  # of each page, as pdfium gives them
    values: set[str] = field(default_factory=set)  # that were typed into forms and onto pages


def read(data: bytes, doc_id: str, source: str) -> Document:
    """Read the text layer of a PDF.

    Running heads, page numbers and line numbers are left out, hyphenated words and
    paragraphs are joined. Pages that cannot be read are listed in the metadata "damaged_pages",
    also those on which most characters have no Unicode value in their font. These, and pages
    that are pictures with hardly any text, are listed in "scanned_pages".

    Raises:
        DocumentError: encrypted, damaged, with hardly any text layer, or too large.
    """
    with _ONE_AT_A_TIME:
        extract = _extract(data)
    _check_text_layer(extract)
    unnumbered = pdf_layout.without_line_numbers(extract.lines)
    rejoined_lines = pdf_layout.rejoined(pdf_layout.with_initials(unnumbered))
    lines = pdf_layout.without_running_heads(rejoined_lines) or rejoined_lines
    left_out = {
        reasons.FIGURES: extract.n_pictures,
        reasons.LINE_NUMBERS: len({*map(id, extract.lines)} - {*map(id, unnumbered)}),  # removed or shortened
        reasons.RUNNING_HEADS: len(rejoined_lines) - len(lines) + len(extract.turned),
        reasons.UNREADABLE: extract.n_unreadable,
        reasons.PAGES: len(extract.damaged_pages),
        reasons.SCANS: len(extract.scanned_pages),
        reasons.READINGS: len(extract.readings),
        reasons.HIDDEN: sum(len(line.split()) for line in extract.hidden),
        reasons.COMMENTS: extract.n_comments,
    }
    title, headings = by_type(lines)
    if title in extract.values:
        title = ""
    if outlined := by_outline(lines, extract.outline):
        headings = with_unnumbered(outlined, headings, lines)
    kept = {id(line) for line in lines}
    dropped = [line.text for line in (*rejoined_lines, *extract.lines) if id(line) not in kept]
    flow = Flow(lines, {heading.first: heading for heading in headings})
    marked = " ".join(word.replace("^", "") for word in flow.text.split() if "^" in word)
    shown = [flow.text, marked, *extract.turned, *extract.readings, *extract.hidden, *dropped]
    characters = _DOUBLED.sub(r"\1", "\n".join(extract.characters))
    left_out[reasons.UNEXPLAINED] = n_lost(shown, [_BETWEEN_WORDS.sub(" ", characters)])
    declared = extract.properties.get("Title", "").strip()
    first_page = _first_page(unnumbered)
    case = case_name(first_page)
    declared = case or title_behind_cover(lines) or declared
    return assemble(
        flow.text,
        flow.headings,
        doc_id=doc_id,
        source=source,
        title=title if is_made_up_title(declared) or _NO_TITLE.match(declared) else declared,
        metadata=_metadata(extract) | (case_fields(first_page) if case else {}),
        pages=flow.pages(extract.n_pages),
        left_out=left_out,
    )


def _properties(pdf: pypdfium2.PdfDocument) -> dict[str, str]:
    """The properties of a file, without the entities and the codes of Windows that some publishers write."""
    raw = pdf.get_metadata_dict(skip_empty=True)
    return {name: unescape(_OF_WINDOWS.sub(lambda sign: f"&#{ord(sign[0])};", value)) for name, value in raw.items()}


def _first_page(lines: Sequence[Line]) -> str:
    """The upper lines of the first page; those at the right of a caption stand behind the others."""
    lines = [line for line in lines if line.page == 0 and not STAMP.match(line.text)][:_LINES_OF_CAPTION]
    left, right = list[str](), list[str]()
    edge = min((line.left for line in lines), default=0.0)
    for before, line in zip([None, *lines], lines, strict=False):
        is_beside = before is not None and abs(line.y - before.y) < 1 and line.left > before.right + line.size
        if before is not None and is_beside and len(before.text) < _MAX_PARTY:
            right.append(line.text)
        else:
            cells = line.cells[not line.text.startswith(line.cells[:1]) :]
            is_split = line.left < edge + _MARGIN and " ".join(cells) == line.text and len(cells[0]) < _MAX_PARTY
            left.append(cells[0] if is_split else line.text)
            right.extend(cells[1:] if is_split else ())
    return "\n".join([*left, *right]).replace("\u00ad", "-")


def _check_text_layer(extract: _Extract) -> None:
    n_chars = _n_printed(extract.lines)
    hides_text = extract.hides_text or extract.n_unreadable > _SHARE_UNREADABLE * n_chars
    is_recognised = extract.properties.get("Creator", "").startswith(_OCR_PROGRAM)
    if n_chars and (n_chars >= _MIN_PAGE_CHARS * extract.n_pages or not hides_text or is_recognised):
        return
    n_pages = extract.n_pages
    pages, their = ("its page has", "its") if n_pages == 1 else (f"its {n_pages:,} pages have", "their")
    found = f"only {n_chars:,} characters in {their} text layer" if extract.lines else "no text layer"
    unreadable = "more have no Unicode value or no shape in their font, or another letter's"
    why = f"{extract.n_unreadable:,} {unreadable}" if extract.n_unreadable else "scanned?"
    option = "--force-ocr " if extract.n_unreadable or extract.lines else ""
    if is_recognised:
        raise DocumentError(f"{pages} {found} after OCR; leave the document out")
    advice = f"run OCR first, e.g. ocrmypdf {option}IN.pdf OUT.pdf, or index it with --ocr"
    error = DocumentError(f"{pages} {found} ({why}); {advice}")
    error.n_scanned = extract.n_pages
    raise error


def _n_printed(lines: Iterable[Line]) -> int:
    """Characters of lines that are no stamp of a court."""
    return sum(len(line.text) for line in lines if not STAMP.match(line.text))


def _metadata(extract: _Extract) -> dict[str, MetadataValue]:
    fields: dict[str, MetadataValue] = {
        "authors": [*authors_of(extract.properties.get("Author", ""))],
        "keywords": extract.properties.get("Keywords", ""),
        "n_pages": extract.n_pages,
        "damaged_pages": [*extract.damaged_pages],
        SCANNED_PAGES: [*sorted(extract.scanned_pages)],
    }
    return {key: value for key, value in fields.items() if value}


def _extract(data: bytes) -> _Extract:
    with closing(_open(data)) as pdf:
        if pdf.get_formtype() != pdfium.FORMTYPE_NONE:
            pdf.init_forms()  # before a page is loaded
        extract = _Extract(n_pages=len(pdf), properties=_properties(pdf))
        if extract.n_pages > _MAX_PAGES:
            raise DocumentError(f"it has {extract.n_pages:,} pages, the limit is {_MAX_PAGES:,}; split it")
        size = 0
        for page in range(extract.n_pages):
            try:
                lines, n_unreadable = _page_lines(pdf, page, extract)
            except pypdfium2.PdfiumError:
                extract.damaged_pages.append(page + 1)
                continue
            extract.lines.extend(lines)
            n_chars = sum(len(line.text) for line in lines)
            extract.n_unreadable += n_unreadable
            if n_unreadable > n_chars:
                extract.damaged_pages.append(page + 1)
                extract.scanned_pages.add(page + 1)
            size += n_chars
            if size > MAX_DOCUMENT_BYTES:
                raise too_large("text", f"more than {MAX_DOCUMENT_BYTES:,}", MAX_DOCUMENT_BYTES)
        extract.outline = _outline(pdf)
        return extract


def _open(data: bytes) -> _Pdf:
    try:
        return pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) == pdfium.FPDF_ERR_PASSWORD:
            raise DocumentError("it is encrypted; save it without a password, e.g. qpdf --decrypt") from error
        raise DocumentError("it is not a PDF, or a damaged one; try to repair it, e.g. with qpdf") from error


def _page_lines(pdf: _Pdf, number: int, extract: _Extract) -> tuple[list[Line], int]:
    """The lines of a page, and its unreadable characters; all else goes into `extract`."""
    with closing(pdf[number]) as page:
        objects: dict[int, list[_Pdf]] = defaultdict(list)
        for place in range(min(pdfium.FPDFPage_CountObjects(page), _MAX_PAGE_OBJECTS)):
            one = pdfium.FPDFPage_GetObject(page.raw, place)
            objects[pdfium.FPDFPageObj_GetType(one)].append(one)
        texts = objects.pop(pdfium.FPDF_PAGEOBJ_TEXT, [])
        is_vertical = _lay_columns_down(page, texts)
        is_turned = not is_vertical and _turn_upright(page, texts)
        with closing(page.get_textpage()) as text_page:
            n_chars = text_page.count_chars()
            if n_chars > _MAX_PAGE_CHARS:
                raise DocumentError(
                    f"page {number + 1} holds {n_chars:,} characters, the limit is {_MAX_PAGE_CHARS:,}; split it"
                )
            extract.n_pictures += len(objects[pdfium.FPDF_PAGEOBJ_IMAGE])
            shapes = [one for ones in objects.values() for one in ones]
            extract.hides_text |= len(shapes) >= _MIN_PAGE_CHARS or _share(page, shapes) >= _SHARE_OF_SHAPES
            lines, turned, n_unreadable = lines_of(text_page, number, is_laid=is_vertical)
            n_silent = len(texts) - n_chars  # texts without a character: their font is not at hand
            n_unreadable += n_silent if n_silent > _SHARE_SILENT * n_chars else 0
            if n_wrong := n_mapped_wrongly(lines):
                lines, n_unreadable = [], n_unreadable + n_wrong
            if not n_unreadable:
                extract.characters.append(text_page.get_text_range())
        extract.turned.extend(turned)
        readings = pdf_layout.readings_of(lines)
        extract.readings.extend(line.text for line in lines if id(line) in readings)
        lines = [line for line in pdf_layout.top_first(lines) if id(line) not in readings]
        if is_vertical:
            lines = [replace(line, text=_BETWEEN_COLUMNS.sub("", line.text)) for line in lines]
            if all(before.y < line.y for before, line in pairwise(lines)):
                lines.reverse()
        elif not is_turned and (outside := [one for one in lines if _is_outside(one, page.get_bbox())]):
            extract.hidden.extend(line.text for line in outside)
            lines = [line for line in lines if line not in outside]
        pictures = [one for kind in _PICTURES for one in objects[kind]]
        if _n_printed(lines) < _MIN_PAGE_CHARS and _share(page, pictures) >= _SHARE_OF_PICTURES:
            extract.scanned_pages.add(number + 1)
        values = list(_values(pdf, page, number, extract))
        extract.values.update(value.text for value in values)
        return pdf_layout.with_values(lines, values), n_unreadable


def _lay_columns_down(page: _Pdf, texts: Sequence[_Pdf]) -> bool:
    """Turn the columns of vertical writing into lines, the right column first; whether the page has such columns.

    pdfium reads no characters of columns whose font is not embedded, since they have no width, and the others from
    left to right.
    """
    n_others = int(len(texts) - _SHARE_OF_COLUMNS * len(texts))
    if not texts or next(islice((one for one in texts if not _is_column(one)), n_others, None), None) is not None:
        return False
    for one in texts:
        pdfium.FPDFPageObj_Transform(one, 0, 1, -1, 0, page.get_height(), 0)
    return True


def _turn_upright(page: _Pdf, texts: Sequence[_Pdf]) -> bool:
    """Turn a page whose texts run upwards, downwards or backwards, as a wide table does; whether it is such a page."""
    matrix, turned = pdfium.FS_MATRIX(), Counter[tuple[int, int]]()
    for number, one in enumerate(texts, 1):
        known = pdfium.FPDFPageObj_GetMatrix(one, matrix)
        if known and abs(matrix.b) > abs(matrix.a):
            turned[0, 1 if matrix.b > 0 else -1] += 1
        elif known and matrix.a < 0 and matrix.d < 0:
            turned[-1, 0] += 1
        elif number - turned.total() > len(texts) - _SHARE_TURNED * len(texts):
            return False
    (x, y), n_turned = next(iter(turned.most_common(1)), ((0, 0), 0))
    if n_turned < _SHARE_TURNED * max(1, len(texts)):
        return False
    size = max(page.get_size())
    for one in texts:
        pdfium.FPDFPageObj_Transform(one, x, -y, y, x, size * (y < 1), size * (y > -1))
    page.set_rotation(0)
    return True


def _is_column(text: _Pdf) -> bool:
    """Whether a text that is not turned is far higher than wide."""
    matrix = pdfium.FS_MATRIX()
    if not pdfium.FPDFPageObj_GetMatrix(text, matrix) or abs(matrix.b) > abs(matrix.a):
        return False
    width, height = _size(text)
    return height > _COLUMN * max(1.0, width)


def _share(page: _Pdf, objects: Sequence[_Pdf]) -> float:
    """The area of objects, a part of which may be on top of others, as a share of the page."""
    return float(sum(math.prod(map(abs, _size(one))) for one in objects) / (page.get_width() * page.get_height() or 1))


def _size(item: _Pdf) -> tuple[float, float]:
    """Width and height of an object of a page; 0 where they are not known."""
    left, bottom, right, top = c_float(), c_float(), c_float(), c_float()
    pdfium.FPDFPageObj_GetBounds(item, left, bottom, right, top)
    return float(right.value - left.value), float(top.value - bottom.value)


def _is_outside(line: Line, box: tuple[float, float, float, float]) -> bool:
    left, bottom, right, top = box
    return line.right < left or line.left > right or line.y + line.size < bottom or line.y > top


def _values(pdf: _Pdf, page: _Pdf, number: int, extract: _Extract) -> Iterator[Line]:
    """The values of form fields and the texts that were typed onto a page, as lines in their places."""
    for place in range(min(pdfium.FPDFPage_GetAnnotCount(page), _MAX_ANNOTATIONS)):
        annotation = pdfium.FPDFPage_GetAnnot(page, place)
        text, box = _value(pdf, annotation), pdfium.FS_RECTF()
        extract.n_comments += _is_comment(annotation)
        if text.strip() and pdfium.FPDFAnnot_GetRect(annotation, box):
            size = min(12.0, abs(box.top - box.bottom) * 0.7)
            for row, line in enumerate(filter(str.strip, re.split(r"[\r\n]+", text)), 1):
                yield Line(line.strip(), number, box.left, box.right, box.top - row * size, size, is_bold=False)
        pdfium.FPDFPage_CloseAnnot(annotation)


def _is_comment(annotation: _Pdf) -> bool:
    """Whether it is a remark that a reader wrote on a page, and that shows only where it is opened."""
    is_mark = pdfium.FPDFAnnot_GetSubtype(annotation) in _MARKS
    return is_mark and bool(_string(partial(pdfium.FPDFAnnot_GetStringValue, annotation, b"Contents")).strip())


def _value(pdf: _Pdf, annotation: _Pdf) -> str:
    """The text of a typed note, the value of a field of text or of a choice, or of a box with a tick; else ""."""
    kind = pdfium.FPDFAnnot_GetSubtype(annotation)
    if kind == pdfium.FPDF_ANNOT_FREETEXT:
        return _string(partial(pdfium.FPDFAnnot_GetStringValue, annotation, b"Contents"))
    if kind != pdfium.FPDF_ANNOT_WIDGET:
        return ""
    form = pdf.formenv
    field_type = pdfium.FPDFAnnot_GetFormFieldType(form, annotation) if form is not None else None
    if field_type in _TICKED and pdfium.FPDFAnnot_IsChecked(form, annotation):
        value = _string(partial(pdfium.FPDFAnnot_GetFormFieldExportValue, form, annotation))
        return "\u2612" if value.lower() in ("", "on", "yes", "1", "true") else value
    is_secret = form is not None and pdfium.FPDFAnnot_GetFormFieldFlags(form, annotation) & _PASSWORD
    is_shown = field_type in _WRITTEN and not is_secret
    return _string(partial(pdfium.FPDFAnnot_GetFormFieldValue, form, annotation)) if is_shown else ""


def _string(get: Callable[[Any, int], int]) -> str:
    """A string that pdfium copies into a buffer, in UTF-16."""
    buffer = create_string_buffer(max(2, min(get(None, 0), _MAX_VALUE_BYTES)))
    get(cast(buffer, POINTER(c_ushort)), len(buffer))
    return buffer.raw.decode("utf-16-le", "replace").rstrip("\0")


def _outline(pdf: _Pdf) -> list[OutlineEntry]:
    entries: list[OutlineEntry] = []
    for bookmark in islice(pdf.get_toc(), _MAX_OUTLINE):
        target = bookmark.get_dest()
        page = target.get_index() if target else None
        if page is not None:
            entries.append((bookmark.get_title(), bookmark.level + 1, page))
    return entries
