"""`longmatch plot` writes pictures, and refuses what does not fit."""

from __future__ import annotations

from pathlib import Path

import pytest

import longmatch
from engine.text.document import Document
from tests.commands import succeed

pytest.importorskip("matplotlib")


@pytest.mark.slow
def test_the_name_of_the_file_gives_the_format(words_folder: Path, tmp_path: Path) -> None:
    for name, start in (("x.png", b"\x89PNG"), ("x.SVG", b"<?xml")):
        succeed("plot", words_folder, "-o", tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)


def test_a_file_or_an_indexed_document_is_on_the_map_with_its_hits(
    words_folder: Path, corpus: list[Document], tmp_path: Path
) -> None:
    (tmp_path / "draft.md").write_text(f"# My draft\n\n{corpus[3].text}")
    succeed("plot", words_folder, tmp_path / "draft.md", "-k", "2", "--by", "family", "-o", tmp_path / "x.svg")
    svg = (tmp_path / "x.svg").read_text()
    assert "query: My draft" in svg and "family: even" in svg
    with longmatch.open(words_folder) as index:
        hits = index.search(tmp_path / "draft.md", k=2)
    assert all(f"{hit.rank}: {hit.score:.4f} {hit.title}" in svg for hit in hits)
    succeed("plot", words_folder, "--id", "doc003", "--where", "topic = 3", "-o", tmp_path / "x.svg")
    svg = (tmp_path / "x.svg").read_text()
    assert "query: Title 3" in svg and "6 of 60 documents" in svg
