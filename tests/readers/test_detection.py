"""Detection of the format of a file by its content, whatever its name."""

import gzip
from pathlib import Path

import pytest

from engine.errors import DocumentError
from engine.readers import Unreadable, read_file
from engine.readers.reader import detected_suffix
from tests.readers.made import docx_bytes
from tests.readers.made_pdf import pdf_of_contents
from tests.readers.zipped import epub_bytes, tar_of, zip_bytes

PDF = pdf_of_contents([b"BT /F1 10 Tf 72 700 Td (The old fox runs.) Tj ET"])
ODT = zip_bytes({"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": "<x/>"})
JATS = b'<article article-type="research-article"><front/><body><p>Fox.</p></body></article>'


@pytest.mark.parametrize(
    ("content", "suffix"),
    [
        (PDF, ".pdf"),
        (b"\n" + PDF, ".pdf"),
        (docx_bytes([("Normal", "The old fox runs.")]), ".docx"),
        (epub_bytes({"one.xhtml": "<p>Fox.</p>"}), ".epub"),
        (ODT, ".odt"),
        (b"<!DOCTYPE html><p>Fox.", ".html"),
        (b"\xef\xbb\xbf<!-- saved -->\n<HTML><body>Fox.", ".html"),
        (b"<?xml version='1.0'?><!DOCTYPE html><html><body>Fox.", ".html"),
        ("<html><body>Fox.".encode("utf-16"), ".html"),
        (b"<article><h1>Fox</h1>", ".html"),
        (JATS, ".xml"),
        (b"<?xml version='1.0'?>\n" + JATS, ".xml"),
        (b'<TEI xmlns="http://www.tei-c.org/ns/1.0"><text/></TEI>', ".xml"),
        (b"<us-patent-grant><x/></us-patent-grant>", ".xml"),
        (b'{"text": "Fox."}\n{"text": "Dog."}\n', ".jsonl"),
        (b'{"text": "Fox."}', ".jsonl"),
        (b'{"text": "' + b"fox " * 30_000 + b'"}', ".jsonl"),
        (b'{\n  "text": "Fox."\n}\n', ".json"),
        (b"% Encoding: UTF-8\n\n@Article{fox,\n  title = {Fox}}", ".bib"),
        (b"TY  - JOUR\r\nTI  - Fox", ".bib"),
        (b"@fox (in the den, asleep) ran.", ".txt"),
        (b"% comment\n\\documentclass{article}\n\\begin{document}Fox.", ".tex"),
        (tar_of({"main.tex": b"Fox."}), ".tar"),
        (b"The old fox runs.", ".txt"),
        (b"# The fox\n\nIt runs.", ".txt"),
        (b"# The fox\n\nIt runs.\n\n## Home\n\nA den.", ".md"),
        (b"Foxes.\r\n\r\n# Runs\r\n\r\nFast.\r\n\r\n# Sleeps\r\n\r\nLong.", ".md"),
        (b"---\ntitle: The fox\ntags:\n  - animals\n\nyear: 2019\n---\nIt runs.", ".md"),
        (b"---\r\ntitle: The fox\r\n---\r\nIt runs.", ".md"),
        (b"---\nIt runs.\n---\nIt sleeps.", ".txt"),
        (b"---\ntitle: The fox\n\nIt runs, and no rule follows.", ".txt"),
        (b"# 1\n\nIt runs.\n\n# 2\n\nIt sleeps.", ".txt"),
        (b"# Set a\na = 1\n# Set b\nb = 2\n", ".txt"),
        (b"A PDF begins with %PDF-1.4.", ".txt"),
        (b"{the set of foxes}", ".txt"),
        (b"<3 foxes>", ".txt"),
        (b"", ".txt"),
    ],
)
def test_the_format_is_seen_in_the_content(tmp_path: Path, content: bytes, suffix: str) -> None:
    file = tmp_path / "unnamed"
    file.write_bytes(content)
    assert detected_suffix(file) == suffix
    if suffix not in (".docx", ".epub", ".odt"):
        file.write_bytes(gzip.compress(content))
        assert detected_suffix(file) == suffix + ".gz"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (zip_bytes({"data.csv": "1"}), "no DOCX, ODT or EPUB"),
        (b"PK\x03\x04 and nothing more", "damaged archive"),
        (gzip.compress(zip_bytes({"data.csv": "1"})), "packed in gzip"),
        (gzip.compress(b"The old fox runs.")[:-9], "not a whole gzip file"),
    ],
    ids=["table in zip", "no zip", "zip in gzip", "cut gzip"],
)
def test_archives_without_a_document_are_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    file = tmp_path / "unnamed"
    file.write_bytes(content)
    with pytest.raises(DocumentError, match=reason):
        detected_suffix(file)


def test_a_detected_pdf_is_read_as_one(tmp_path: Path) -> None:
    file = tmp_path / "unnamed"
    file.write_bytes(PDF)
    (document,) = read_file(file.rename(file.with_suffix(detected_suffix(file))))
    assert not isinstance(document, Unreadable) and document.text.strip() == "The old fox runs."
