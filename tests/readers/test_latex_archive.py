"""The source of a LaTeX document in an archive, as arXiv sends it, is one document."""

import gzip
import re
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.readers import read_bytes, read_file
from engine.text.document import Document, Unreadable
from tests.readers.zipped import tar_of

MAIN = rb"\documentclass{a}\title{On Foxes}\begin{document}\maketitle %s\end{document}"
MEMBERS: dict[str, bytes | tarfile.TarInfo] = {
    "./": tarfile.TarInfo("./"),
    "./._main.tex": bytes(range(32)),
    "./main.tex": MAIN % rb"One \input{parts/two} \input{../out} \input{link} \includegraphics{fig/f}",
    "./parts/two.tex": rb"two \input{three}",
    "./parts/three.tex.gz": gzip.compress(b"three"),
    "./old-main.tex": rb"\section{Draft} Lost.",
    "./fig/f.tex": rb"\documentclass{standalone}\begin{document}figure\end{document}",
    "./fig/f.pdf": b"%PDF-1.4",
}


def link(name: str, kind: bytes) -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.type, header.linkname = kind, "/etc/passwd" if kind == tarfile.SYMTYPE else "parts/two.tex"
    return header


def one_of(data: bytes, name: str) -> Document | Unreadable:
    (document,) = read_bytes(data, name)
    return document


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT])
@pytest.mark.parametrize("pack", [gzip.compress, bytes])
@pytest.mark.parametrize("name", ["2004.14974.gz", "fox.tar.gz", "fox.tgz", "fox.tar", "FOX.TAR"])
def test_an_archive_is_the_document_of_its_main_file(name: str, pack: Callable[[bytes], bytes], form: int) -> None:
    document = one_of(pack(tar_of(MEMBERS, form)), f"papers/{name}")
    assert isinstance(document, Document)
    assert (document.title, document.doc_id) == ("On Foxes", name.removesuffix(".gz"))
    assert document.text.split() == ["On", "Foxes", "One", "two", "three"]
    assert document.metadata == {"missing_files": ["../out", "link"], "left_out_missing_files": 2} | {
        "left_out_figures": 1,
        "left_out_other_documents": 1,
    }


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_and_devices_are_not_read(kind: bytes) -> None:
    document = one_of(tar_of(MEMBERS | {"./link.tex": link("./link.tex", kind)}), "fox.tar")
    assert isinstance(document, Document) and document.metadata["missing_files"] == ["../out", "link"]


@pytest.mark.parametrize("pack", [gzip.compress, bytes])
def test_one_file_in_gzip_is_a_document(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    (tmp_path / "2004.14974.gz").write_bytes(pack(MAIN % b"One"))
    (document,) = read_file(tmp_path / "2004.14974.gz")
    assert isinstance(document, Document) and document.text.split() == ["On", "Foxes", "One"]


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ({"a.tex": MAIN % b"long answer " * 9, "b.tex": MAIN % rb"\begin{abstract}Short\end{abstract}"}, "answer"),
        ({"a.tex": rb"\documentclass{a} answer " * 9, "b.tex": MAIN % b"paper"}, "paper"),
        ({"sub/a.tex": rb"\documentclass{a}\begin{document}\input{b}\end{document}", "sub/b.tex": b"paper"}, "paper"),
        ({"a.tex": b"plain TeX paper \\bye", "b.tex": b"x"}, "paper"),
    ],
    ids=["most text", "made title", "subfolder", "no class"],
)
def test_the_main_file_is_chosen(members: dict[str, bytes], text: str) -> None:
    document = one_of(tar_of(members), "fox.tar")
    assert isinstance(document, Document) and text in document.text


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.tar", tar_of({"a.csv": b"1,2"}), "without a LaTeX document; unpack it"),
        ("a.tgz", gzip.compress(tar_of({}) or b""), "neither a tar archive nor LaTeX"),
        ("a.gz", gzip.compress(b"%PDF-1.4"), "looks like .pdf; unpack it, or name it .pdf.gz"),
        ("a.tar.gz", gzip.compress(tar_of(MEMBERS))[:-99], "not a whole gzip file"),
        ("a.tar", tar_of(MEMBERS)[:1800], "damaged tar archive|without a LaTeX document"),
        ("a.tar", tar_of({f"{number}.tex": b"" for number in range(21)}), "it has more than 20 members; unpack it"),
        ("a.tgz", gzip.compress(tar_of({"a.tex": bytes(60_000)})), "unpacks to more than 50,000 bytes; unpack it"),
    ],
    ids=["no LaTeX", "neither", "another format", "cut gzip", "cut tar", "members", "bytes"],
)
def test_an_archive_is_refused_with_a_reason(
    monkeypatch: pytest.MonkeyPatch, name: str, data: bytes, reason: str
) -> None:
    monkeypatch.setattr("engine.readers.latex.MAX_MEMBERS", 20)
    monkeypatch.setattr("engine.readers.latex.MAX_ARCHIVE_BYTES", 50_000)
    found = one_of(data, name)
    assert isinstance(found, Unreadable)
    assert re.search(reason, found.reason), found.reason
