"""JSON: one document an object, in a list or under its id; JSON lines: one object a line, read line by line.

The form is that of BEIR, with sections:

    {"_id" or "id": text or number, "title": text,
     "text": text  or  "sections": [{"heading" or "title": text, "text": text, "level": 1, "kind": text}],
     "metadata" or "meta": {...}}

Records of other collections have other fields: see `engine.readers.records`. Where a record has neither `text` nor
`sections`, its fields of several sentences are text, under their names.

The title is the first line of the text, as BEIR joins them. A text that was once pages
is read as a text file is: running heads are left out, centred lines are headings. Where a record has
both `sections` and `text`, the sections are read. The kind of a section with a
heading, such as "claims", becomes metadata: "kind.claims" lists the headings, and
weights of sections can refer to them by kind. Metadata can be nested:
{"venue": {"name": "ACL"}} becomes "venue.name", a list of objects becomes one list
for each field. Other fields of the record become metadata too where they are a scalar
or a list of strings, and so do those inside of an object, under dotted names, if there are at most 100
of up to 1,000 characters; other values (vectors, lists of objects) are skipped, and their words counted.
"""

from __future__ import annotations

import codecs
import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import suppress
from typing import Any, BinaryIO, cast

from engine.errors import DocumentError
from engine.readers.blocks import Blocks
from engine.readers.encoding import decode, encoding_of_lines, read_limited
from engine.readers.fields import USUAL, Fields, case_name, dated, issue_date, names_of
from engine.readers.left_out import RUNNING_HEADS
from engine.readers.records import (
    COUNTED,
    IDS,
    TEXT_FIELDS,
    count_unread,
    id_of,
    is_bioc,
    is_block_list,
    of_block_list,
    rows_of,
    text_of,
    text_of_turns,
    texts_of,
    title_of,
    usual_names,
)
from engine.readers.text import running_text
from engine.text.cleaning import MAX_DOCUMENT_BYTES, one_line, too_large, without_encoded
from engine.text.document import KIND, Document, MetadataValue, Scalar, Unreadable
from engine.text.headings import centred_headings
from engine.text.segmentation import Heading

_OWN_FIELDS = frozenset(["_id", "id", "title", "text", "sections", "metadata", "meta"])
_OF_SECTIONS = ("text", "paragraphs", "content", "body")  # the text of a section, whichever stands there first
_HEADS = ("heading", "title", "section_title", "section_name", "section", "header", "name", "head")
_INNER = ("sections", "subsections")  # sections of a section
_AUTHORS = re.compile("(?:authors?(?:hips)?|creators?|contributors|byline)(?:_?(?:names|list|string))?$", re.IGNORECASE)
_OF_ANSWER = frozenset([*IDS, "title", "authors_parsed"])
_OPS = '"ops:world-patent-data"'
_OF_SECTION = frozenset([*_OF_SECTIONS, *_INNER, *_HEADS, "level", "kind"])
_PAGE = re.compile(r"\s*<(?:\?xml|!doctype|html|body|p|div|h[1-6]|article|section|opinion)\b[^<>]*>.*</", re.I | re.S)
_NOT_JSON = "it is not JSON"
_DECODER = json.JSONDecoder(strict=False)  # line breaks and tabs inside of texts are no fault
_BORDER = re.compile(r"[\s,\[\]]*")
_WHOLE = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:\[|\{(?:[^\n]*[^\s},])?,?[ \t\r]*\n\s*[^\s{])")  # no object on a line
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_MAX_DEPTH = 6  # of sections
_MAX_LINE_BYTES = 2 * MAX_DOCUMENT_BYTES  # JSON may write one character as six
_BUFFER_BYTES = 2**20
# A line of a bulk file of Elasticsearch that says what the next line is.
ACTION = re.compile(
    rb'\s*\{\s*"(?:index|create|update|delete)"\s*:\s*\{'
    rb'(?:\s*"(?:_id"\s*:\s*"?([^"\\{},]{1,512})|(?:_\w+|routing|pipeline)"\s*:\s*"?[^"\\{},]{0,512})"?\s*,?)*\s*\}\s*\}\s*$'
)
_MAX_BRACKETS = 3_000_000  # an object that is five characters of JSON takes 200 bytes of memory
_MAX_KEY_CHARS = 1_000  # of a dotted key of metadata
_MAX_NESTED, _MAX_NESTED_CHARS = 100, 1_000  # values in an object, and characters of each, that are metadata
_LARGEST_INT = 2**63 - 1


def read(data: bytes, doc_id: str, source: str, fields: Fields = USUAL) -> Document | Iterator[Document | Unreadable]:
    """Read one JSON object, whose own id is metadata, or a list of objects with ids.

    Raises:
        DocumentError: the data is not one object of the form that the module describes.
    """
    text = without_encoded(decode(data))[0]
    if _OPS in text[:1_000]:
        return _read_ops(_parse(text), doc_id, source)
    known = {"text", "sections", *TEXT_FIELDS} | ({fields.text} if fields.text else set())
    try:
        found = [fields.named(record) for record in _records(text, known)]
    except DocumentError as error:
        parts = [*_values(text)] if _NOT_JSON in str(error) else []
        if len(parts) < 2:
            raise
        found = [one for one in parts if isinstance(one, dict)]
        if len(found) < len(parts) or not is_block_list(found):
            return _several(parts, doc_id, source, fields)
    if is_block_list(found):
        return _document(of_block_list(found), doc_id, source, {})
    found = [{"text": turns}] if (turns := text_of_turns(found)) else found
    inside = (one["documents"] if isinstance(one.get("documents"), list) else [one] for one in found)
    documents = [one for of_record in inside for one in of_record]  # of collections of BioC
    records = [*map(usual_names, documents if documents and all(map(is_bioc, documents)) else found)]
    if len(records) > 1:
        return _several(records, doc_id, source)
    return _one(records[0], doc_id, source)


def _read_ops(record: Mapping[str, Any], doc_id: str, source: str) -> Document | Iterator[Document | Unreadable]:
    """Read an answer of the EPO's OPS, whose JSON is its XML: "@" begins attributes, and "$" is text."""
    from lxml import etree

    from engine.readers.xml import read_root

    root = etree.Element("answer")
    todo: list[tuple[Any, str, object]] = [(root, *item) for item in reversed([*record.items()])]
    while todo:
        parent, name, value = todo.pop()
        if name == "$":
            parent.text = str(value)
        elif name.startswith("@"):
            parent.set(name.rpartition(":")[2].lstrip("@"), str(value))
        elif isinstance(value, list):
            todo += [(parent, name, part) for part in reversed(value)]
        else:
            element = etree.SubElement(parent, name.rpartition(":")[2])
            parts = value if isinstance(value, dict) else {"$": value}
            todo += [(element, *item) for item in reversed([*parts.items()])]
    return read_root(root, doc_id, source)


def read_one(data: bytes, doc_id: str, source: str) -> Document:
    """Read one JSON object; its own id, where it has one, is metadata."""
    return _one(usual_names(_parse(decode(data))), doc_id, source)


def _one(record: dict[str, Any], doc_id: str, source: str) -> Document:
    own_id = next((record[name] for name in IDS if name in record), None)
    metadata: dict[str, MetadataValue] = {"id": own_id} if isinstance(own_id, str | int) else {}
    return _document(record, doc_id, source, metadata)


def _records(text: str, known: Set[str]) -> list[dict[str, Any]]:
    """The object of a file, or the objects of a list or under their ids; `known` fields hold text."""
    if not text.lstrip().startswith("["):
        record = _parse(text)
        is_one = not known.isdisjoint(usual_names(record))
        page = [] if is_one else _page_of(record, known)
        return rows_of(record) or _by_id(record, known) or page or [record]
    record = _parse(f'{{"records": {text}}}')["records"]
    if not record or not all(isinstance(one, dict) for one in record):
        raise DocumentError("it is a JSON list, not of objects; write one object a line into a .jsonl file")
    return [*record]


def _by_id(records: dict[str, Any], known: Set[str]) -> list[dict[str, Any]]:
    """The records in an object that has them under their ids; [] for any other object."""
    if any(map(_OWN_FIELDS.__contains__, records)) or not known.isdisjoint(usual_names(records)):
        return []
    are_records = (isinstance(one, dict) and not known.isdisjoint(usual_names(one)) for one in records.values())
    return [{"_id": key} | one for key, one in records.items()] if all(are_records) else []


def _page_of(answer: Mapping[str, Any], known: Set[str], depth: int = 0) -> list[dict[str, Any]]:
    """The records in an answer of a service: those of its one list of records with text, or the one inside of it.

    The first one has what is beside them, which is counted.
    """
    found = []
    for key, value in answer.items():
        records = value if isinstance(value, list) else [value]
        if isinstance(value, dict) and (inside := _by_id(value, known)):
            records = inside
        elif isinstance(value, dict):  # what names the one record can stand beside it
            records = [
                {name: one for name, one in answer.items() if name in _OF_ANSWER or _AUTHORS.match(name)} | value
            ]
        if not records or not isinstance(records[0], dict):
            continue
        if not known.isdisjoint(usual_names(records[0])):
            found.append((key, [one for one in records if isinstance(one, dict)]))
        elif isinstance(value, dict) and depth < _MAX_DEPTH and (inside := _page_of(value, known, depth + 1)):
            found.append((key, inside))
    if len(found) != 1:
        return []
    ((key, (first, *others)),) = found
    beside = [value for name, value in answer.items() if name != key and name not in first]
    return [first | {"unread": [*beside, first.get("unread")]}, *others]


def _several(
    records: Iterable[dict[str, Any] | DocumentError], doc_id: str, source: str, fields: Fields = USUAL
) -> Iterator[Document | Unreadable]:
    """The documents of records, named by their ids, or by their places where they have none of their own."""
    seen = set[str]()
    for number, record in enumerate(records, 1):
        own_id = str(number)
        try:
            record = _usual(record, fields)
            own_id = own_id if id_of(record, own_id) in seen else id_of(record, own_id)
            seen.add(own_id)
            yield _document(record, f"{doc_id}#{own_id}", f"{source}:{number}", {})
        except DocumentError as error:
            yield Unreadable(f"{source}:{number}", str(error), f"{doc_id}#{own_id}")


def _usual(record: dict[str, Any] | DocumentError, fields: Fields) -> dict[str, Any]:
    if isinstance(record, DocumentError):
        raise record
    return usual_names(fields.named(record))


def stream(
    lines: BinaryIO, source: str, fields: Fields = USUAL, doc_id: str = "", n_before: int = 0
) -> Iterator[Document | Unreadable]:
    """Read JSON lines; a bad line becomes `Unreadable`, the others are read.

    A list of objects, objects over several lines, and UTF-16 are read as a whole. The lines that are not UTF-8 have one
    encoding, that of the first such lines. A record without an id is named by the `doc_id` of the file, if there is
    one, and by its line, to which those that were read before are added. Bulk files of Elasticsearch have ids on lines
    of their own. A file without a record is `Unreadable`; a stream without a `doc_id` may be empty.
    """
    results = _records_of(lines, source, fields, doc_id, n_before)
    first = next(results, Unreadable(source, "it holds no text", doc_id) if doc_id and not n_before else None)
    if first is not None:
        yield first
        yield from results


def _records_of(
    lines: BinaryIO, source: str, fields: Fields, doc_id: str, n_before: int
) -> Iterator[Document | Unreadable]:
    reader: io.BufferedReader[Any] = (
        lines if isinstance(lines, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, lines), _BUFFER_BYTES)
    )
    number, encoding = n_before, ""  # of lines that are not UTF-8
    own: dict[str, Any] = {}  # the id of the next record
    try:
        if _WHOLE.match(head := reader.peek()) or head.startswith(_UTF16):
            yield from _read_whole(reader, source, doc_id, fields)
        while line := reader.readline(_MAX_LINE_BYTES + 1):
            number += 1
            place = f"{source}:{number}"
            if len(line) > _MAX_LINE_BYTES:
                while line and not line.endswith(b"\n"):
                    line = reader.readline(2**20)
                yield Unreadable(place, str(too_large("line", f"more than {_MAX_LINE_BYTES:,}", _MAX_LINE_BYTES)))
            elif action := ACTION.match(line):
                own = {"_id": action[1].decode("utf-8", "replace").strip()} if action[1] else {}
            elif line.strip():
                encoding = encoding or encoding_of_lines(line, reader.peek)
                yield from _read_line(line, place, doc_id and f"{doc_id}#{number}", fields, encoding, own)
                own = {}
            else:
                number += _skip_blank_lines(reader)
    finally:
        if reader is not lines:
            reader.detach()  # the stream belongs to the caller


def _skip_blank_lines(reader: io.BufferedReader[Any]) -> int:
    """Skip the blank lines that are in the buffer; returns their number."""
    ahead = reader.peek()
    n_blank = len(ahead) - len(ahead.lstrip())
    n_bytes = ahead.rfind(b"\n", 0, n_blank) + 1
    reader.read(n_bytes)
    return ahead.count(b"\n", 0, n_bytes)


def _read_line(
    line: bytes, place: str, doc_id: str, fields: Fields, encoding: str, own: dict[str, Any]
) -> Iterator[Document | Unreadable]:
    try:
        text = without_encoded(decode(line, encoding) if encoding else line.decode("utf-8-sig"))[0].rstrip(" \t\r\n,")
        try:
            records: Iterable[dict[str, Any] | DocumentError] = [_parse(text)]
        except DocumentError as error:
            records = _values(text) if "Extra data" in str(error) else [error]
        for record in records:
            yield _read_record(record, place, doc_id, fields, own)
    except DocumentError as error:
        yield Unreadable(place, str(error))


def _read_whole(
    reader: io.BufferedReader[Any], source: str, doc_id: str, fields: Fields
) -> Iterator[Document | Unreadable]:
    try:
        records = _values(without_encoded(decode(read_limited(reader, MAX_DOCUMENT_BYTES)))[0])
        for number, record in enumerate(records, 1):
            yield _read_record(record, f"{source}:{number}", doc_id and f"{doc_id}#{number}", fields, {})
    except DocumentError as error:
        yield Unreadable(source, str(error))


def _read_record(
    record: dict[str, Any] | DocumentError, place: str, doc_id: str, fields: Fields, own: dict[str, Any]
) -> Document | Unreadable:
    """Read a record; `doc_id` names one without an id, and `own` are fields that it has elsewhere."""
    try:
        usual = _usual(record, fields) | own
        doc_id = id_of(usual, doc_id)
        return _document(usual, doc_id, place, {})
    except DocumentError as error:
        return Unreadable(place, str(error), doc_id)
    except (TypeError, ValueError, LookupError, AttributeError, RecursionError) as error:  # the others are read
        return Unreadable(place, f"a field has values of another kind ({type(error).__name__}: {error})", doc_id)


def _values(text: str) -> Iterator[dict[str, Any] | DocumentError]:
    """The objects of a text, in a list or one after the other; behind a damaged one, those at lines such as its own."""
    _check_brackets(text)
    place = _BORDER.match(text).end()  # type: ignore[union-attr]
    while place < len(text):
        try:
            value, end = _DECODER.raw_decode(text, place)
            yield value if isinstance(value, dict) else _no_object(value)
        except (ValueError, RecursionError) as error:
            yield DocumentError(f"{_NOT_JSON}: {error}")
            begin = text.rfind("\n", 0, place) + 1
            end = text.find(f"\n{text[begin:place]}{{", place)
            end = len(text) if end < 0 or text[begin:place].strip() else end
        place = _BORDER.match(text, end).end()  # type: ignore[union-attr]


def _parse(text: str) -> dict[str, Any]:
    _check_brackets(text)
    try:
        record = _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"{_NOT_JSON}: {error}") from error
    if not isinstance(record, dict):
        raise _no_object(record)
    return record


def _check_brackets(text: str) -> None:
    n_brackets = text.count("{") + text.count("[")
    if n_brackets > _MAX_BRACKETS:
        raise DocumentError(f"it has {n_brackets:,} brackets, the limit is {_MAX_BRACKETS:,}; leave out nested values")


def _no_object(value: object) -> DocumentError:
    kind = type(value).__name__
    return DocumentError(f"it is a JSON {kind}, not an object; write one object a line into a .jsonl file")


def _document(record: Mapping[str, Any], doc_id: str, source: str, metadata: dict[str, MetadataValue]) -> Document:
    title = title_of(record)
    blocks = Blocks()
    text = record.get("text")
    is_usual = bool(record.get("sections")) or text not in (None, "", [], {})
    if record.get("sections"):
        texts = texts_of({name: record.get(name) for name in ("abstract", "abstract_text")}, blocks.left_out)
    elif _PAGE.match(text) if isinstance(text, str) else text and not _is_plain(text):
        texts, is_usual = texts_of({"contents": text}, blocks.left_out), False
    else:
        texts = {} if is_usual else texts_of(record, blocks.left_out)
    for key, value in record.items():
        if key not in _OWN_FIELDS and key not in texts:
            metadata |= {key: _checked(key, value)} if _is_plain(value) else _nested(key, value)
    _add_metadata(record.get("metadata") or record.get("meta") or {}, metadata, is_strict=not texts)
    named = (record.get(name) for name in ("inventor_list", "inventors"))
    inventors = names_of(next((people for people in named if not _is_plain(people)), None))
    people = {"authors": _authors(record, metadata), "inventors": inventors}
    metadata |= {field: [*names] for field, names in people.items() if names}
    metadata = dated(issue_date(record.get("issued"))) | metadata
    blocks.add(title)
    if record.get("sections"):
        sections = _section_list(record)
        first = sections[0] if isinstance(sections, list) and sections else None
        if not isinstance(first, dict) or "abstract" not in str(first.get("heading") or first.get("title")).lower():
            _add_texts(blocks, texts)
        metadata |= _add_sections(blocks, sections)
    elif is_usual or ("text" in record and not texts) or (title and not texts and _is_blank(record)):
        _add_text(blocks, text_of(record, "text"))
    else:
        if not texts:
            raise DocumentError(
                f'it has no field "text" or "sections"; its fields are {", ".join(map(str, [*record][:20])) or "none"}'
            )
        _add_texts(blocks, texts)
    shown = [blocks.text, title, *map(str, metadata.values())]
    count_unread(record, _read_fields(record, {*metadata, *texts}), shown, blocks.left_out)
    return blocks.document(doc_id, source, title or case_name(blocks.text) or doc_id, metadata)


def _is_blank(record: Mapping[str, Any]) -> bool:
    """Whether the fields for texts are blank in a record, or it is an entry of a bibliography without an abstract."""
    texts = [value for name, value in record.items() if name in TEXT_FIELDS or name == "abstract_inverted_index"]
    return not any(texts) and (bool(texts) or {"issued", "type"} <= {*record})


def _nested(key: str, value: object) -> dict[str, MetadataValue]:
    """The short scalars inside an object under dotted keys; {} for one that looks like data."""
    found: dict[str, MetadataValue] = {}
    todo = [(key, value)] if isinstance(value, dict) and key not in COUNTED and not _AUTHORS.match(key) else []
    while todo and len(found) <= _MAX_NESTED:
        name, value = todo.pop()
        if isinstance(value, dict) and name.count(".") < _MAX_DEPTH:
            todo += [(f"{name}.{inner}", part) for inner, part in value.items()][: _MAX_NESTED + 1]
        elif _is_plain(value) and len(str(value)) <= _MAX_NESTED_CHARS:
            with suppress(DocumentError):
                found[name] = _checked(name, value)
    return found if len(found) <= _MAX_NESTED else {}


def _authors(record: Mapping[str, Any], metadata: Mapping[str, MetadataValue]) -> list[str]:
    """The names of authors that are not metadata as they are."""
    inside = record["metadata"] if isinstance(record.get("metadata"), dict) else {}
    named = [value for place in (record, inside) for name, value in place.items() if value and _AUTHORS.match(name)]
    authors = next((value for value in named if not isinstance(value, str)), next(iter(named), metadata.get("authors")))
    parsed = record.get("authors_parsed") or inside.get("authors_parsed")  # arXiv: family name, given names, suffix
    if isinstance(parsed, list) and (not authors or isinstance(authors, str)):
        people = [[*name[1:2], *name[:1], *name[2:3]] for name in parsed if isinstance(name, list)]
        authors = [{"name": " ".join(map(str, person)).strip()} for person in people]
    return names_of(authors)


def _read_fields(record: Mapping[str, Any], used: set[str]) -> set[str]:
    """The fields of a record all of whose words are text or metadata."""
    sections = record.get("sections")
    listed = sections if isinstance(sections, list) else []
    is_known = all(_OF_SECTION.issuperset(section) for section in listed if isinstance(section, dict))
    plain = {name for name in (*used, *(() if sections else ("text",))) if _is_plain(record.get(name))}
    return {"_id", "id", *plain, *(("sections",) if sections and is_known else ())}


def _add_texts(blocks: Blocks, texts: Mapping[str, list[tuple[str, str]]], level: int = 1) -> None:
    for parts in texts.values():
        for heading, text in parts:
            blocks.add_heading(heading, level)
            _add_text(blocks, text, depth=1 if heading else 0)


def _section_list(record: Mapping[str, Any]) -> object:
    """The sections of a record as a list of objects, where they are texts by name, or texts beside their names."""
    sections, names = record["sections"], record.get("section_names")
    if isinstance(sections, dict) and all(isinstance(part, str | list | dict) for part in sections.values()):
        return [
            {"heading": name} | (part if isinstance(part, dict) else {"text": part}) for name, part in sections.items()
        ]
    if not isinstance(sections, list) or not all(isinstance(section, str | list) for section in sections):
        return sections
    names = names if isinstance(names, list) and len(names) == len(sections) else [""] * len(sections)
    return [{"heading": name, "text": text} for name, text in zip(names, sections, strict=True)]


def _add_text(blocks: Blocks, text: str, depth: int = 0) -> None:
    """Add a text without the furniture of its pages; centred headings lie `depth` levels deep."""
    running = running_text(text)
    block = running.text.strip("\n")
    blocks.left_out[RUNNING_HEADS] += running.n_heads
    start = blocks.add(block)
    headings = centred_headings(block) if "\n" in block else []
    if running.pages and not blocks.pages:
        n_blank = len(running.text) - len(running.text.lstrip("\n"))
        blocks.pages += [start + max(0, place - n_blank) for place in running.pages]
    if ";base64," not in block:
        blocks.headings += [Heading(one.title, one.level + depth, start + one.start) for one in headings]


def _add_metadata(value: object, metadata: dict[str, MetadataValue], *, is_strict: bool) -> None:
    """Add nested fields; of records of other collections, those that no filter can compare are left out."""
    if is_strict or not isinstance(value, dict):
        _flatten("", value, metadata)
        return
    for key, inner in value.items():
        with suppress(DocumentError):
            _flatten(str(key), inner, metadata)


def _add_sections(blocks: Blocks, sections: object, depth: int = 1) -> dict[str, list[Scalar]]:
    """Add all sections to the text; returns the headings of sections with a kind, by metadata field."""
    if not isinstance(sections, list):
        raise DocumentError(f'the field "sections" is {type(sections).__name__}, not a list of objects')
    kinds: dict[str, list[Scalar]] = {}
    titled = False
    for number, section in enumerate(sections):
        if not isinstance(section, dict):
            raise DocumentError(f"section {number} is {type(section).__name__}, not an object with heading and text")
        level = section.get("level")
        title = next((text for name in _HEADS if (text := text_of(section, name))), "")
        if not title and titled:
            blocks.resume("", depth)  # the section before has ended
        titled = bool(title)
        blocks.add_heading(title, level if isinstance(level, int) and level > 0 else depth)
        field = _field_of_section(section, number)
        if _is_plain(section.get(field)):
            _add_text(blocks, text_of(section, field), depth)
        else:
            _add_texts(blocks, texts_of({"contents": section[field]}, blocks.left_out), depth + 1)
        kind = section.get("kind")
        if title and isinstance(kind, str) and kind.strip():
            kinds.setdefault(f"{KIND}{one_line(kind)}", []).append(one_line(title))
        for name in _INNER if depth < _MAX_DEPTH else ():
            for field, headings in _add_sections(blocks, section.get(name) or [], depth + 1).items():
                kinds.setdefault(field, []).extend(headings)
    return kinds


def _field_of_section(section: Mapping[str, Any], number: int) -> str:
    """The field with the text of a section; "text" where the section is a heading alone."""
    named = next((name for name in _OF_SECTIONS if section.get(name)), None)
    others = [name for name, value in section.items() if isinstance(value, list) and value and name not in _INNER]
    if named is None and others:
        raise DocumentError(
            f'section {number} has no field "text"; its fields are {", ".join(map(str, [*section][:20]))}'
        )
    return named or "text"


def _is_plain(value: object) -> bool:
    if isinstance(value, list):
        return all(isinstance(item, str) for item in value)
    return value is None or isinstance(value, str | int | float)


def flattened(value: Mapping[str, object]) -> dict[str, MetadataValue]:
    """Nested values under dotted keys."""
    flat: dict[str, MetadataValue] = {}
    _flatten("", value, flat)
    return flat


def _flatten(prefix: str, value: object, flat: dict[str, MetadataValue]) -> None:
    """Add a value to `flat`; nested objects become dotted keys."""
    if len(prefix) > _MAX_KEY_CHARS:
        raise DocumentError(
            f"the metadata is nested too deeply: {prefix[:40]}... is over {_MAX_KEY_CHARS:,} characters"
        )
    if isinstance(value, dict):
        for key, inner in value.items():
            _flatten(f"{prefix}.{key}" if prefix else key, inner, flat)
    elif not prefix:
        raise DocumentError(f'the field "metadata" is {type(value).__name__}, not an object')
    elif isinstance(value, list) and value:  # what is nested in it is left out
        columns: dict[str, list[object]] = {}
        for item in value:
            for field, inner in item.items() if isinstance(item, dict) else [("", item)]:
                if not isinstance(inner, dict | list):
                    columns.setdefault(f"{prefix}.{field}" if field else prefix, []).append(inner)
        flat |= {key: _checked(key, column) for key, column in columns.items()}
    else:
        flat[prefix] = _checked(prefix, value)


def _checked(key: str, value: object) -> MetadataValue:
    return [_checked_scalar(key, one) for one in value] if isinstance(value, list) else _checked_scalar(key, value)


def _checked_scalar(key: str, value: object) -> str | int | float | bool | None:
    if isinstance(value, float) and not math.isfinite(value):
        raise DocumentError(f'metadata "{key}" is {value}, which no filter can compare; leave it out')
    if isinstance(value, int) and abs(value) > _LARGEST_INT:
        return str(value)
    if value is None or isinstance(value, str | int | float):
        return value
    raise DocumentError(f'metadata "{key}" holds a {type(value).__name__} in a list; give scalars or lists of scalars')
