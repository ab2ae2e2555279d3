"""What people type first, without reading the documentation, and what they must see."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import longmatch

_EIPS = Path(__file__).resolve().parents[2] / "demo/corpus/eips"
_OPEN = "import longmatch\nindex = longmatch.open('papers.lm')\n"
TRIES = {
    "search with a text": ("print(index.search('typed transaction envelope of accounts').hits[0].doc_id)", "eip-2718"),
    "search with a file": ("print(index.search('draft.md').hits[0].doc_id)", "eip-"),
    "search with a dict": ("print(index.search({'title': 'Draft', 'text': 'typed envelope'}).hits[0].doc_id)", "2718"),
    "search with several": (
        "for result in index.search(['typed envelope', 'reject senders with code']):\n    print(result.hits[0].doc_id)",
        "eip-3607",
    ),
    "make a document of a text": (
        "query = longmatch.Document.from_text('typed transaction envelope', title='Draft')\n"
        "print(index.search(query).hits[0].doc_id)",
        "eip-2718",
    ),
    "index a list of dicts": (
        "print(len(longmatch.build('a.lm', [{'id': 'a', 'text': 'foxes and rivers'}], encode='none')))",
        "1",
    ),
    "index a table": (
        "import pandas\ntable = pandas.DataFrame({'doi': ['a'], 'abstract': ['foxes and rivers']})\n"
        "print(len(longmatch.build('b.lm', table, text='abstract', id='doi', encode='none')))",
        "1",
    ),
    "go through the hits": ("for hit in index.search_id('eip-2718.md'):\n    print(hit.doc_id)", "eip-"),
    "filter by a dict": ("print(len(index.search_id('eip-2718.md', where={'doc_id': 'eip-3607.md'}).hits))", "1"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seven documents, indexed by words, and another one to search with."""
    folder = tmp_path_factory.mktemp("tries")
    (folder / "papers").mkdir()
    for paper in sorted(_EIPS.glob("*.md")):
        shutil.copy(paper, folder / "papers")
    shutil.move(folder / "papers/eip-2930.md", folder / "draft.md")
    longmatch.build(folder / "papers.lm", folder / "papers", encode="none")
    return folder


@pytest.mark.parametrize("name", TRIES)
def test_a_first_try_prints_the_expected_output(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, expected = TRIES[name]
    monkeypatch.chdir(folder)
    exec(compile(_OPEN + code, name, "exec"), {})
    assert expected in capsys.readouterr().out
