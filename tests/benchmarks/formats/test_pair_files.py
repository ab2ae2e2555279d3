from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.formats.lines import FormatError
from benchmarks.formats.pair_files import FILES, is_pair_folder, read_folder
from benchmarks.pair_scorer import Pair

ROWS = [
    ("1.0", "A1", "B2", "b'A \\xc3\\xa4 paper\\nof two lines'", 'Cites "it.'),
    ("0", "A1", "C3", 'b"A \\xc3\\xa4 paper\\nof two lines"', "b'unlike"),
    ("0.0", "A1", "D4", "Anything", " "),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of all three files, with the same pairs in each."""
    for name in FILES.values():
        (tmp_path / name).write_text("".join("\t".join(row) + "\n" for row in ROWS))
    return tmp_path


def test_a_folder_gives_each_document_once_and_drops_blank_texts(folder: Path) -> None:
    read = read_folder(folder)
    assert tuple(read.pairs) == ("train", "valid", "test")
    assert list(read.pairs.values()) == [[Pair("A1", "B2", True), Pair("A1", "C3", False)]] * 3
    assert read.n_blank == dict.fromkeys(("train", "valid", "test"), 1)
    assert {doc_id: document.text for doc_id, document in read.documents.items()} == {
        "A1": "A ä paper\nof two lines",
        "B2": 'Cites "it.',
        "C3": "b'unlike",
    }


def test_a_folder_is_known_by_its_files_and_all_of_them_are_needed(folder: Path, tmp_path: Path) -> None:
    assert is_pair_folder(folder)
    (folder / FILES["train"]).unlink()
    assert is_pair_folder(folder)
    with pytest.raises(FormatError, match=r"new_aan_pairs.train.tsv cannot be read \(No such file or directory\)"):
        read_folder(folder)
    assert not is_pair_folder(tmp_path / "elsewhere")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("1\tA\tB\tone", "tsv:1 has 4 columns, not 5; it must be label, id1, id2, text1, text2 by tabs"),
        ("2\tA\tB\tone\ttwo", "tsv:1 has the label '2'; it must be 0 or 1"),
        ("yes\tA\tB\tone\ttwo", "tsv:1 has the label 'yes'; it must be 0 or 1"),
        ("1\tA\tB\tone\ttwo\n0\tC\tA\tthree\tfour", r"tsv:2 gives 'A' another text than .*tsv:1; an id must name"),
        ("1\tA\tB\tb'\\xg'\ttwo", "tsv:1 holds bytes that are not written as Python writes them"),
    ],
)
def test_a_damaged_line_is_refused(folder: Path, line: str, said: str) -> None:
    (folder / FILES["train"]).write_text(line + "\n")
    with pytest.raises(FormatError, match=said):
        read_folder(folder)
