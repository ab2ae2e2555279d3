"""Finds the format of a file by its suffix or its first bytes, and reads it; each format has a module of its own."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import islice
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Any, BinaryIO, TypeAlias, cast

from engine.errors import DocumentError
from engine.readers.encoding import MAX_CONTAINER_BYTES, read_limited
from engine.readers.fields import USUAL, Fields
from engine.text.cleaning import MAX_DOCUMENT_BYTES, regex, too_large
from engine.text.document import Document, Unreadable, without_gz

_HEAD_BYTES = 65_536
GZIP, _ZIP, _PDF = b"\x1f\x8b", b"PK\x03\x04", b"%PDF-"
_BY_MIMETYPE = {
    "application/epub+zip": ".epub",
    **dict.fromkeys((f"application/vnd.oasis.opendocument.text{kind}" for kind in ("", "-template")), ".odt"),
}
_BY_MEMBER = {"word/document.xml": ".docx", "word/document2.xml": ".docx", "META-INF/container.xml": ".epub"}
_MIMETYPE_BYTES = 100  # of the member that names the format of an archive, at most
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_COMMENTS = r"(?:<!--(?:[^-]|-(?!->))*+-->\s*+)*+"  # possessive: linear time
_HTML_START = regex(
    rf"{_COMMENTS}<(?:!doctype\s+html|html|head|body|title|meta|main|div|section|p|h[1-6])\b", re.I | re.S
)
_XHTML = regex(r"<!doctype\s+html|<html\b", re.I)
_XML_START = regex(
    rf"{_COMMENTS}<(?:\?xml\b|!doctype\b|TEI\b|TEI\.2\b|us-patent|ep-patent|pmc-articleset\b|OAI-PMH\b"
    r"|patent-|PATDOC\b|akomaNtoso\b|rfc\b|bill\b|teiCorpus\b|PubmedArticle|ops:)",
    re.S,
)
_ARTICLE = regex(rf"{_COMMENTS}<article\b([^>]*)", re.S)  # of JATS or of HTML
_BIBLIOGRAPHY = regex(r"TY {1,2}- ?[A-Z]|PMID- ?\d|FN [^\n]*\nVR \d|(?:%[^\n]*\s+)*+@\w+\s*[{(]\s*[^\s,={}]+\s*,")
_LATEX = regex(r"^[ \t]*\\document(?:class|style)\b", re.M)
_FRONT_MATTER = regex(  # lines of YAML between two rules, the first one with a key
    r"---[ \t]*+\r?\n(?=[A-Za-z_][\w-]*+:\s)(?:(?:[A-Za-z_][\w-]{0,100}+:|[ \t\r#]|-[ \t]|(?=\n))[^\n]*+\n)++"
    r"---[ \t]*+\r?(?:\n|\Z)"
)
_ATX_HEADING = regex(  # with a letter, and blank lines around
    r"(?:\A|\n[ \t]*+\r?\n)#{1,6}[ \t]++(?=[^\n]*[^\W\d_])[^\n]++(?=\n[ \t]*+\r?(?:\n|\Z))"
)
_LEAST_HEADINGS = 2  # of Markdown; a single line may be a comment or a number


def detected_suffix(path: Path) -> str:
    """The suffix for the content of a file: ".pdf", ".html.gz"; ".txt" where no other format is detected.

    PDF, DOCX, ODT, EPUB, HTML, XML, LaTeX, tar, JSON and JSON lines are detected, all but DOCX, ODT and EPUB also in
    gzip. So is Markdown that begins with front matter of YAML or has two headings with "#" between blank lines; other
    Markdown and reStructuredText look like plain text, and are treated as such.
    """
    with path.open("rb") as stream:
        head = stream.read(_HEAD_BYTES)
        if not head.startswith(GZIP):
            return _archive_suffix(path) if head.startswith(_ZIP) else suffix_of(head)
        stream.seek(0)
        try:
            with cast(BinaryIO, gzip.GzipFile(fileobj=stream)) as unpacked:
                head = unpacked.read(_HEAD_BYTES)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise DocumentError(f"it is not a whole gzip file ({error}); pack it again") from error
    if head.startswith(_ZIP):
        raise DocumentError("it is an archive packed in gzip; unpack it first: gunzip")
    return suffix_of(head) + ".gz"


def _archive_suffix(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            mimetype = ""
            if "mimetype" in names:
                with archive.open("mimetype") as member:
                    mimetype = member.read(_MIMETYPE_BYTES).decode("ascii", "replace").strip()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError, zlib.error) as error:
        raise DocumentError(f"it is a damaged archive ({error}); save the document again") from error
    if mimetype in _BY_MIMETYPE:
        return _BY_MIMETYPE[mimetype]
    for name, suffix in _BY_MEMBER.items():
        if name in names:
            return suffix
    raise DocumentError("it is an archive, but no DOCX, ODT or EPUB; unpack it, and name the documents in it")


def suffix_of(data: bytes) -> str:
    """The suffix for data that is neither a zip file nor packed, by its first bytes."""
    head = data[:_HEAD_BYTES]
    if _is_tar(head):
        return ".tar"
    text = head.decode("utf-16" if head.startswith(_UTF16) else "utf-8-sig", "replace").lstrip()
    if head.lstrip().startswith(_PDF):
        return ".pdf"
    if text.startswith("<"):
        return _markup_suffix(text)
    if text.startswith("{"):
        return _json_suffix(text)
    if _BIBLIOGRAPHY.match(text):
        return ".bib"
    if _LATEX.search(text):
        return ".tex"
    return text_suffix(text)


def text_suffix(text: str) -> str:
    """The suffix for a text of words: ".md" with front matter or two headings of Markdown, else ".txt"."""
    text = text[:_HEAD_BYTES].lstrip()
    headings = islice(_ATX_HEADING.finditer(text), _LEAST_HEADINGS)
    is_markdown = _FRONT_MATTER.match(text) is not None or len(list(headings)) == _LEAST_HEADINGS
    return ".md" if is_markdown else ".txt"


def _is_tar(head: bytes) -> bool:
    """Whether the checksum of a first header is right; old archives have no other mark."""
    try:
        tarfile.TarInfo.frombuf(head[: tarfile.BLOCKSIZE], "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True


def _markup_suffix(text: str) -> str:
    if _HTML_START.match(text):
        return ".html"
    if _XML_START.match(text):
        return ".html" if _XHTML.search(text, 0, 1_000) else ".xml"
    article = _ARTICLE.match(text)
    if article is None:
        return ".txt"
    return ".xml" if re.search(r"article-type|dtd-version|xmlns|xml:lang", article[1]) or "<front" in text else ".html"


def _json_suffix(text: str) -> str:
    line, newline, _ = text.partition("\n")
    try:
        return ".jsonl" if isinstance(json.loads(line), dict) else ".txt"
    except (ValueError, RecursionError):
        if not newline:  # a line longer than the bytes that were read
            return ".jsonl" if len(text) > _HEAD_BYTES // 8 and line.startswith('{"') else ".txt"
        return ".json" if re.match(r'\{\s*"', text) else ".txt"


Results: TypeAlias = Iterator[Document | Unreadable]


@dataclass(frozen=True, slots=True)
class Format:
    """A file format: how it is read, and how large a file may be."""

    name: str
    read: Callable[[bytes, str, str], Document | Results] | None  # None: a stream of them, see `jsonl.stream`
    max_bytes: int = MAX_DOCUMENT_BYTES
    read_in_folder: Callable[[bytes, str, str], Document | Results] | None = None  # with the files it includes
    includes: Callable[[Path], Iterable[Path]] | None = None  # the files that a file includes


def _named(module: str, function: str = "read") -> Callable[..., Any]:
    """A function of a format's module, which is imported when the function is first called."""

    def call(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401
        return getattr(import_module(f"engine.readers.{module}"), function)(*arguments, **options)

    return call


_SOURCE = Format("LaTeX source", _named("latex", "read_packed"), MAX_CONTAINER_BYTES // 2)  # unpacks itself
_JSON = Format("JSON", _named("jsonl"))
_SUFFIXES = (
    (".txt .text .vtt .srt", Format("plain text", _named("text"))),
    (".rst", Format("reStructuredText", _named("rst"))),
    (".md .markdown .mdx .qmd .rmd", Format("Markdown", _named("markdown"))),
    (".html .htm .xhtml", Format("HTML", _named("html"))),
    (".xml .nxml .tei .dita .fodt", Format("XML", _named("xml"), MAX_CONTAINER_BYTES)),
    (".tex", Format("LaTeX", _named("latex"), read_in_folder=_named("latex", "read_in_folder"),
                    includes=_named("latex", "included_files"))),
    (".tar .tgz", _SOURCE),
    (".bib .ris .nbib .enw .ciw", Format("bibliography", _named("bibliography"))),
    (".pdf", Format("PDF", _named("pdf"), MAX_CONTAINER_BYTES)),
    (".epub", Format("EPUB", _named("epub"), MAX_CONTAINER_BYTES)),
    (".odt .ott", Format("ODT", _named("odt"), MAX_CONTAINER_BYTES)),
    (".docx .docm .dotx .dotm", Format("DOCX", _named("docx"), MAX_CONTAINER_BYTES)),
    (".json", _JSON),
    (".jsonl .jsonlines .ndjson", Format("JSON lines", None)),
)  # fmt: skip
FORMATS: Mapping[str, Format] = MappingProxyType(
    {suffix: form for suffixes, form in _SUFFIXES for suffix in suffixes.split()}
)


def is_readable(path: PurePath) -> bool:
    """Whether the name has a suffix of `FORMATS`, maybe followed by ".gz"; the file is not opened."""
    return PurePath(without_gz(path.name)).suffix.lower() in FORMATS


def holds_document(path: Path) -> bool:
    """Whether a file is readable by its name, or by its first bytes where the name says "packed" alone."""
    form = _format_of(path.name)
    if form is not _SOURCE:
        return form is not None
    try:
        return detected_suffix(path) in (".tar", ".tar.gz", ".tex.gz")
    except (OSError, DocumentError):
        return False


def read_file(path: Path, doc_id: str | None = None, fields: Fields = USUAL) -> Results:
    """Read the document, or the documents, of a file.

    Never raises for a bad or missing file: it yields `Unreadable` for a document that cannot be read.

    JSON lines with ids keep them; `fields` names those of records.
    """
    source = str(path)
    try:
        with path.open("rb") as stream:
            yield from _read(stream, source, doc_id, fields, is_in_folder=True)
    except OSError as error:
        yield Unreadable(source, error.strerror or str(error), doc_id or _default_id(source))


def read_document(path: str | Path, doc_id: str | None = None) -> Document:
    """Read the one document of a file.

    Raises:
        DocumentError: it cannot be read, or the file holds none or several.
    """
    found = list(islice(read_file(Path(path), doc_id), 2))
    if len(found) != 1:
        count = "no document" if not found else "several documents"
        raise DocumentError(f"{path} holds {count}, not one; read them with engine.readers.read_file")
    if isinstance(found[0], Unreadable):
        raise DocumentError(f"{path}: {found[0].reason}")
    return found[0]


def read_bytes(data: bytes, name: str, doc_id: str | None = None) -> Results:
    """Like `read_file`, for bytes in memory; the suffix of `name` determines the format ("stdin.txt")."""
    yield from _read(io.BytesIO(data), name, doc_id, USUAL)


def read_text(text: str) -> Document:
    """Read a text without a file, as Markdown or plain text; doc_id and source are "", and so is a title it lacks.

    Raises:
        DocumentError: there is no text, or too much, or it is several documents.
    """
    form = FORMATS[text_suffix(text)]
    found = list(_read_one(form, form.read or _named("text"), io.BytesIO(text.encode("utf-8", "replace")), "", ""))
    if len(found) != 1 or isinstance(found[0], Unreadable):
        raise DocumentError(found[0].reason if isinstance(found[0], Unreadable) else "it holds several documents")
    return found[0]


def included_files(path: Path) -> Iterable[Path]:
    """The files that become part of a document, directly or through others, because `path` includes them.

    Resolved paths, none where the format has no includes or the file cannot be read.
    """
    form = _format_of(path.name)
    return form.includes(path) if form is not None and form.includes is not None else ()


def _read(stream: BinaryIO, source: str, doc_id: str | None, fields: Fields, *, is_in_folder: bool = False) -> Results:
    doc_id = doc_id or _default_id(source)
    form = _format_of(source)
    if form is None:
        known = " ".join(FORMATS)
        yield Unreadable(source, f"its format is not known by its name; known are {known}, each also with .gz", doc_id)
        return
    try:
        if source.lower().endswith(".gz") and form is not _SOURCE:
            with cast(BinaryIO, gzip.GzipFile(fileobj=stream)) as unpacked:
                yield from _read_as(form, unpacked, source, doc_id, fields, is_in_folder)
        else:
            yield from _read_as(form, stream, source, doc_id, fields, is_in_folder)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        yield Unreadable(source, f"it is not a whole gzip file ({error}); pack it again", doc_id)


def _read_as(form: Format, stream: BinaryIO, source: str, doc_id: str, fields: Fields, is_in_folder: bool) -> Results:
    read = form.read_in_folder if is_in_folder and form.read_in_folder is not None else form.read
    if read is None:
        yield from _named("jsonl", "stream")(stream, source, fields, doc_id)
    else:
        read = partial(_named("jsonl"), fields=fields) if form is _JSON else read
        yield from _read_one(form, read, stream, source, doc_id)


def _read_one(
    form: Format, read: Callable[[bytes, str, str], Document | Results], stream: BinaryIO, source: str, doc_id: str
) -> Results:
    try:
        _check_size(stream, form.max_bytes)
        data = read_limited(stream, form.max_bytes)
    except DocumentError as error:
        yield Unreadable(source, str(error), doc_id)
        return
    try:
        found = read(data, doc_id, source)
        if isinstance(found, Document):
            yield found
        else:
            yield from found
    except DocumentError as error:
        yield Unreadable(source, str(error), doc_id, error.n_scanned)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - parsers raise what they like, and a bulk job must go on
        reason = f"the {form.name} parser failed ({type(error).__name__}: {error}); the file may be damaged"
        yield Unreadable(source, reason, doc_id)


def _check_size(stream: BinaryIO, limit: int) -> None:
    """Refuse a large file before it is read; the size of a compressed file is known only after unpacking."""
    if isinstance(stream, gzip.GzipFile) or not stream.seekable():
        return
    size = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    if size > limit:
        raise too_large("file", f"{size:,}", limit)


def _format_of(name: str) -> Format | None:
    inner = without_gz(name)
    return FORMATS.get(PurePath(inner).suffix.lower(), _SOURCE if inner != name else None)


def _default_id(source: str) -> str:
    return without_gz(PurePath(source).name)
