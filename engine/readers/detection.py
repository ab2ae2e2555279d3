"""Detects the format of a file without a suffix from its first bytes. Reads no document."""

from __future__ import annotations

import codecs
import gzip
import json
import re
import tarfile
import zipfile
import zlib
from pathlib import Path
from typing import BinaryIO, cast

from engine.errors import DocumentError

_HEAD_BYTES = 65_536
GZIP, _ZIP, _PDF = b"\x1f\x8b", b"PK\x03\x04", b"%PDF-"
_BY_MIMETYPE = {"application/epub+zip": ".epub", "application/vnd.oasis.opendocument.text": ".odt"}
_BY_MEMBER = {"word/document.xml": ".docx", "word/document2.xml": ".docx", "META-INF/container.xml": ".epub"}
_MIMETYPE_BYTES = 100  # of the member that names the format of an archive, at most
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_COMMENTS = r"(?:<!--(?:[^-]|-(?!->))*+-->\s*+)*+"  # possessive: linear time
_HTML = re.compile(
    rf"{_COMMENTS}<(?:!doctype\s+html|html|head|body|title|meta|main|div|section|p|h[1-6])\b", re.I | re.S
)
_XHTML = re.compile(r"<!doctype\s+html|<html\b", re.I)
_XML = re.compile(
    rf"{_COMMENTS}<(?:\?xml\b|!doctype\b|TEI\b|TEI\.2\b|us-patent|ep-patent|pmc-articleset\b|OAI-PMH\b"
    r"|patent-|PATDOC\b|akomaNtoso\b|rfc\b|bill\b|teiCorpus\b|PubmedArticle|ops:)",
    re.S,
)
_ARTICLE = re.compile(rf"{_COMMENTS}<article\b([^>]*)", re.S)  # of JATS or of HTML
_LATEX = re.compile(r"^[ \t]*\\document(?:class|style)\b", re.M)


def detected_suffix(path: Path) -> str:
    """The suffix for the content of a file: ".pdf", ".html.gz"; ".txt" where no other format is detected.

    PDF, DOCX, ODT, EPUB, HTML, XML, LaTeX, tar, JSON and JSON lines are detected, all but DOCX, ODT and EPUB also in
    gzip. Markdown and reStructuredText look like plain text, and are treated as such.
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
    return ".tex" if _LATEX.search(text) else ".txt"


def _is_tar(head: bytes) -> bool:
    """Whether the checksum of a first header is right; old archives have no other mark."""
    try:
        tarfile.TarInfo.frombuf(head[: tarfile.BLOCKSIZE], "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True


def _markup_suffix(text: str) -> str:
    if _HTML.match(text):
        return ".html"
    if _XML.match(text):
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
