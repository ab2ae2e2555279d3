"""Every hostile construction is read, or refused with its reason, within the limits of one document."""

import gzip
import json
import os
import resource
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.readers import Unreadable
from engine.text.document import Document
from indexer.reading.reader import DocumentReader, ReadLimits, ReadRequest
from tests.readers.made_pdf import HELVETICA, _file, pdf_of_contents, stream
from tests.readers.test_docx_parts import word_of
from tests.readers.zipped import tar_of

LIMITS = ReadLimits(seconds=2.0, memory_bytes=512 * 2**20)
START_SECONDS = 4.0  # processor time of two processes that start, and import the parsers
PROGRAM_BYTES = 200 * 2**20  # that a process holds beside a document: modules and tables of parsers

pytestmark = pytest.mark.skipif(os.name != "posix", reason="documents are read without limits there")


# Large or well compressed but valid files; `hostile_readers` crash and hang.
_WORDS = b"Pumps move water from the lower to the upper basin. "
_SHOWN = b"BT /F1 10 Tf 72 700 Td (%s) Tj ET\n" % _WORDS


def _deflated(data: bytes) -> bytes:
    """A stream object whose data are deflated."""
    data = zlib.compress(data, 1)
    return b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(data), data)


def _pdf(content: bytes, n_pages: int = 1) -> bytes:
    """One page, listed `n_pages` times."""
    pages = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (b"4 0 R " * n_pages, n_pages)
    page = (
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 5 0 R /Resources << /Font << /F1 3 0 R >> >>"
    )
    return _file([b"<< /Type /Catalog /Pages 2 0 R >>", pages, HELVETICA, page + b" >> >>", content])


def _nested_tables(depth: int, n_cells: int) -> str:
    cell = "<w:tc><w:p><w:r><w:t>x</w:t></w:r></w:p></w:tc>"
    start = f"<w:tbl><w:tr>{cell * n_cells}<w:tc>"
    return start * depth + "<w:p/>" + "</w:tc></w:tr></w:tbl>" * depth


def _styles(n_styles: int) -> str:
    return "".join(
        f'<w:style w:type="paragraph" w:styleId="s{number}"><w:name w:val="s{number}"/>'
        f'<w:basedOn w:val="s{number - 1}"/></w:style>'
        for number in range(n_styles)
    )


def _empty_members(n: int) -> bytes:
    """A tar archive of empty files, made without a `TarInfo` for each, which takes seconds."""
    header = tar_of({"000000.tex": b""})[:512]
    total = int(header[148:154], 8) - sum(b"000000")
    names = (b"%06d" % number for number in range(n))
    members = (b"%b%b%06o%b" % (name, header[6:148], total + sum(name), header[154:]) for name in names)
    return b"".join(members) + bytes(1024)


_PARAGRAPH = "<w:p><w:r><w:t>Water.</w:t></w:r></w:p>"
FILES: dict[str, Callable[[], bytes]] = {
    "definitions.tex": lambda: b"".join(rb"\def\a%d{x}" % n + b"\n" for n in range(8_000)) + _WORDS,
    "open_sections.tex": lambda: rb"\section{" * 8_000 + _WORDS,
    "macros.tex": lambda: (rb"\emph{water} and \textbf{pumps} $x^2$ \cite{a} " + _WORDS) * 10_000,
    "zeros.tgz": lambda: gzip.compress(tar_of({"main.tex": b"\\documentclass{a}"}) + bytes(2**29), 1),
    "members.tar.gz": lambda: gzip.compress(_empty_members(200_000), 1),
    "mains.tar": lambda: tar_of({f"{n}.tex": rb"\documentclass{a}" + rb"\input{0}" * 900 for n in range(2_000)}),
    "many_characters.pdf": lambda: _pdf(_deflated(_SHOWN * 250_000)),
    "many_pages.pdf": lambda: _pdf(stream(_SHOWN), n_pages=20_000),
    "outline.pdf": lambda: pdf_of_contents([_SHOWN] * 3, outline=[("Pumps move water", 0)] * 5_000),
    "nested_tables.docx": lambda: word_of(_nested_tables(80, 200)),
    "styles.docx": lambda: word_of('<w:p><w:pPr><w:pStyle w:val="s7999"/></w:pPr></w:p>' + _PARAGRAPH, _styles(8_000)),
    "much_xml.docx": lambda: word_of(_PARAGRAPH * 3_000_000),
    "empty_paragraphs.docx": lambda: word_of("<w:p/>" * 3_000_000),
    "nested_lists.json": lambda: b'{"id": "a", "text": "water", "x": [%s]}' % b",".join([b"[[[[1]]]]"] * 100_000),
    "deep_lists.json": lambda: b'{"id": "a", "text": "water", "x": %s}' % (b"[" * 100_000 + b"]" * 100_000),
    "sections.json": lambda: json.dumps({"id": "a", "sections": [{"heading": "", "text": "a"}] * 900_000}).encode(),
    "blank_lines.jsonl.gz": lambda: gzip.compress(b"\n" * 60_000_000 + b'{"id": "a", "text": "water"}\n', 1),
    "newlines.txt": lambda: b"\n" * 30_000_000 + _WORDS,
    "numbered.txt": lambda: b"".join(b"%d. Pump\n\n" % n for n in range(1_800_000)),
    "headings.md": lambda: b"#\n" * 2_000_000 + _WORDS,
    "list.md": lambda: b"- a\n" * 1_000_000,
    "front_matter.md": lambda: b"---\n" + b"a: b\n" * 800_000,
    "attributes.html": lambda: b"<p %s>water</p>" % b" ".join(b"a%d='1'" % n for n in range(80_000)),
    "cells.html": lambda: b"<table><tr>%s</tr></table>" % (b"<td>1" * 80_000),
    "breaks.html": lambda: b"<br>" * 8_000_000 + _WORDS,
    "elements.xml": lambda: b"<article><body><p>water</p>%s</body></article>" % (b"<p/>" * 8_000_000),
    "cells.xml": lambda: b"<article><body><table><tr>%s</tr></table></body></article>" % (b"<td>1</td>" * 80_000),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_a_hostile_file_stays_within_the_limits(tmp_path: Path, name: str) -> None:
    path, after = tmp_path / name, tmp_path / "after.txt"
    path.write_bytes(FILES[name]())
    after.write_text("The next document.")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    with DocumentReader(LIMITS) as reader:
        *found, last = reader.read([ReadRequest(str(path)), ReadRequest(str(after))])
        peak = _peak_bytes(reader.pid)
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert isinstance(last, Document) and last.text == "The next document."
    assert len(found) == 1
    if isinstance(found[0], Unreadable):
        assert found[0].reason
        assert not found[0].reason.startswith(("no answer", "the process that read it was killed", "the reader failed"))
    assert spent.ru_utime + spent.ru_stime - used.ru_utime - used.ru_stime <= 1.2 * LIMITS.seconds + START_SECONDS
    assert peak <= 1.2 * LIMITS.memory_bytes + PROGRAM_BYTES


def _peak_bytes(pid: int | None) -> int:
    """The most memory that a process has held; 0 where the system has no such file."""
    status = Path(f"/proc/{pid}/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), 0)
