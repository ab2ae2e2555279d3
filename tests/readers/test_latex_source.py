"""LaTeX documents of several files: which files are included, and which are not."""

import gzip
import os
from pathlib import Path
from time import process_time

import pytest

from engine.readers import read_document, read_file
from engine.readers.latex_source import MAX_INCLUDES, included_files, load
from engine.text.document import Document
from tests.readers.made import document_of

BODY = "A sentence of the body that is long enough. " * 6


def folder_of(path: Path, **files: str) -> Path:
    """Write files; two underscores in a name are a slash."""
    for name, text in files.items():
        file = path / f"{name.replace('__', '/')}.tex"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    return path / "main.tex"


def test_included_files_stand_in_their_places(tmp_path: Path) -> None:
    main = folder_of(
        tmp_path,
        main=rf"\begin{{document}}\input{{parts/one}} \include{{parts/two.tex}} \section{{End}} {BODY}\end{{document}}",
        parts__one=rf"\section{{One}} {BODY} \input deep % its folder is the folder of this file",
        parts__two=rf"\section{{Two}} {BODY}",
        parts__deep="The deep words.",
    )
    document = read_document(main)
    assert [section.heading for section in document.sections] == ["One", "Two", "End"]
    one = document.sections[0]
    assert document.text[one.start : one.stop].split()[-3:] == ["The", "deep", "words."]
    assert "missing_files" not in document.metadata


def test_macros_of_an_included_preamble_and_of_a_style_beside_the_document_are_expanded(tmp_path: Path) -> None:
    main = folder_of(
        tmp_path,
        main=r"\input{macros}\title{\sys{} report}\begin{document}We built \sys.\end{document}",
        macros=r"\newcommand{\sys}{LongMatch}",
    )
    document = read_document(main)
    assert (document.title, document.text) == ("LongMatch report", "LongMatch report\n\nWe built LongMatch.")
    main = folder_of(
        tmp_path, main=r"\usepackage[x]{own, none,layout} The \sys{} and \lock{oak}. \lstinputlisting{none.c}"
    )
    (tmp_path / "own.sty").write_text(
        r"\ProvidesPackage{own}\newcommand{\sys}{LongMatch}\def\lock#1{lock of {#1}}\relax"
    )
    (tmp_path / "layout.sty").write_text(r"\renewcommand{\sys}{No}\renewcommand{\maketitle}{}")
    document = read_document(main)
    assert document.text == "The LongMatch and lock of oak."
    assert document.metadata["missing_files"] == ["none.c"]


def test_a_subfile_gives_its_body_alone(tmp_path: Path) -> None:
    main = folder_of(
        tmp_path,
        main=r"\begin{document}before \includestandalone[x]{part} \subincludefrom{sub/}{deep} after\end{document}",
        part=r"\documentclass[main]{subfiles}\title{No}\begin{document}the part\end{document} rest",
        sub__deep="the deep part",
    )
    assert read_document(main).text.split() == "before the part the deep part after".split()


def test_missing_binary_and_damaged_files_are_noted(tmp_path: Path) -> None:
    main = folder_of(tmp_path, main=r"Words \input{none} and \include{other}%\input{hidden}")
    document = read_document(main)
    assert document.text == "Words and"
    assert document.metadata["missing_files"] == ["none", "other"]
    (tmp_path / "picture.tex").write_bytes(bytes(range(32)) * 9)
    (tmp_path / "packed.tex.gz").write_bytes(b"no gzip")
    document = read_document(folder_of(tmp_path, main=r"Words \input{picture} \input{packed}"))
    assert (document.text, document.metadata["missing_files"]) == ("Words", ["picture", "packed"])


def test_a_document_in_memory_includes_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder_of(tmp_path, other="secret")
    monkeypatch.chdir(tmp_path)
    document = document_of("main.tex", rb"Words \input{other}")
    assert document.text == "Words"


@pytest.mark.parametrize("name", ["../secret", "/SECRET", "link", "linked/secret", ".hidden", "pipe", "a" * 280])
def test_no_file_outside_the_folder_is_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret.tex").write_text("secret words")
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / ".hidden.tex").write_text("secret words")
    (inside / "link.tex").symlink_to(tmp_path / "secret.tex")
    (inside / "linked").symlink_to(tmp_path)
    os.mkfifo(inside / "pipe.tex")
    name = name.replace("SECRET", str(tmp_path / "secret"))
    main = folder_of(inside, main=rf"Words \input{{{name}}}")
    document = read_document(main)
    assert (document.text, document.metadata["missing_files"]) == ("Words", [name])


def test_circular_and_deep_inclusions_end(tmp_path: Path) -> None:
    chain = {f"part{number}": rf"p{number} \input{{part{number + 1}}}" for number in range(30)}
    main = folder_of(tmp_path, main=r"a \input{main} b \input{other} c \input{part0}", other=r"o \input{main}", **chain)
    words = read_document(main).text.split()
    assert words == ["a", "b", "o", "c", *(f"p{number}" for number in range(10))]


@pytest.mark.slow
def test_files_that_include_each_other_many_times_are_limited(tmp_path: Path) -> None:
    files = {f"part{number}": rf"\input{{part{number + 1}}}" * 9 for number in range(8)}
    main = folder_of(tmp_path, main=r"Words \input{part0}", **files)
    assert len(load(main.read_bytes(), main).files) <= MAX_INCLUDES
    assert read_document(main).text == "Words"


def test_packed_files_include_packed_files(tmp_path: Path) -> None:
    (tmp_path / "main.tex.gz").write_bytes(gzip.compress(rb"one \input{part} three"))
    (tmp_path / "part.tex.gz").write_bytes(gzip.compress(b"two"))
    (document,) = read_file(tmp_path / "main.tex.gz")
    assert isinstance(document, Document)
    assert document.text.split() == ["one", "two", "three"]


def test_included_files_are_those_that_are_read(tmp_path: Path) -> None:
    main = folder_of(
        tmp_path,
        main=r"\input{a} \begin{verbatim}\input{b}\end{verbatim} %\input{b}",
        a=r"\input{c}\endinput \input{b}", b="b", c="c",
    )  # fmt: skip
    assert included_files(main) == (tmp_path / "a.tex", tmp_path / "c.tex")
    assert included_files(tmp_path / "c.tex") == ()
    assert included_files(tmp_path / "none.tex") == ()


@pytest.mark.parametrize(
    "unit", ["\\input ", "\\input" + " " * 50, "\\input{", " ", "\\includegraphics[", "\\import {a}", "{"]
)
def test_the_search_for_included_files_takes_time_linear_in_the_source(tmp_path: Path, unit: str) -> None:
    seconds = []
    for size in (20_000, 400_000):
        main = folder_of(tmp_path, main=f"\\input{{x}}\\includegraphics{{y}}{unit * (size // len(unit))}")
        started = process_time()
        included_files(main)
        seconds.append(process_time() - started)
    assert seconds[1] < 0.05 + 100 * seconds[0]  # 400 times for a search by the square
