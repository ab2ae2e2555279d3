from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.formats.gwikimatch import article_name, article_names, pair_files, read_pairs, read_texts, with_texts
from benchmarks.formats.lines import FormatError
from benchmarks.pair_scorer import Pair

WIKI = "http://en.wikipedia.org/wiki/"
PAIRS = [Pair("Alan Turing", "Enigma machine", True), Pair("Alan Turing", "AC/DC", False)]


def test_pairs_are_named_by_their_articles(tmp_path: Path) -> None:
    rows = [("2", "Alan_Turing", "Enigma_machine"), ("0", "alan_Turing", "AC%2FDC")]
    (tmp_path / "pairs.tsv").write_text("".join(f"{label}\t{WIKI}{a}\t{WIKI}{b}\n" for label, a, b in rows))
    assert list(read_pairs(tmp_path / "pairs.tsv")) == PAIRS
    assert article_names(PAIRS) == ["Alan Turing", "Enigma machine", "AC/DC"]


def test_the_files_of_a_folder_are_found_by_their_splits(tmp_path: Path) -> None:
    assert pair_files(tmp_path) == {}
    for split in ("train", "eval", "test"):
        (tmp_path / f"gwikimatch_v2_human_neg_1.{split}_external_wdp.filtered.tsv").write_text("")
    found = {split: path.name.split(".")[1].partition("_")[0] for split, path in pair_files(tmp_path).items()}
    assert found == {"train": "train", "valid": "eval", "test": "test"}
    (tmp_path / "gwikimatch_v2_human_neg_1.eval_external_wdp.filtered.tsv").unlink()
    with pytest.raises(FormatError, match=r"holds 0 files gwikimatch\*\.eval_external_wdp\*\.tsv; one is needed"):
        pair_files(tmp_path)


def test_a_url_and_a_name_are_one_article() -> None:
    forms = (f"{WIKI}Caf%C3%A9_Zoo?action=raw", f"{WIKI}Café_Zoo#History", "café Zoo", "Café_Zoo")
    assert {article_name(form) for form in forms} == {"Café Zoo"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (f"3\t{WIKI}A\t{WIKI}B", "pairs.tsv:1 has the label '3'; it must be 0, 1 or 2"),
        (f"1\t{WIKI}A", "pairs.tsv:1 has 2 columns, not 3"),
        (f"1\t{WIKI}A\thttp://example.org/B", "pairs.tsv:1 names 'http://example.org/B', which is no article"),
        (f"1\t{WIKI}A\t{WIKI}", "which is no article of Wikipedia; it must hold /wiki/NAME"),
    ],
)
def test_a_damaged_line_is_refused(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "pairs.tsv").write_text(line + "\n")
    with pytest.raises(FormatError, match=said):
        list(read_pairs(tmp_path / "pairs.tsv"))


def test_texts_that_were_fetched_are_found_by_url_or_name(tmp_path: Path) -> None:
    ids = (WIKI + "Alan_Turing", "Enigma machine", "Nobody asked")
    lines = [json.dumps({"id": doc_id, "sections": [{"heading": "", "text": "Text."}]}) for doc_id in ids]
    (tmp_path / "texts.jsonl").write_text("\n".join(lines))
    documents = read_texts(tmp_path / "texts.jsonl", article_names(PAIRS))
    assert [(name, document.doc_id) for name, document in documents.items()] == [
        ("Alan Turing", "Alan Turing"),
        ("Enigma machine", "Enigma machine"),
    ]
    assert with_texts(PAIRS, documents) == (PAIRS[:1], ["AC/DC"])


def test_pairs_without_any_text_raise_an_error(tmp_path: Path) -> None:
    with pytest.raises(
        FormatError, match="no pair of 2 has both its texts; 3 articles are missing, the first is 'Alan"
    ):
        with_texts(PAIRS, {})
    (tmp_path / "texts.jsonl").write_text("{}\n")
    with pytest.raises(FormatError, match=r"texts.jsonl:1: the record has no id"):
        read_texts(tmp_path / "texts.jsonl", ["A"])
