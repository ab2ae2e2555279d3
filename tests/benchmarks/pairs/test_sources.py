from __future__ import annotations

import gzip
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from benchmarks.datasets import DATA, DatasetError, checksum, files_checksum
from benchmarks.formats.lines import FormatError
from benchmarks.pair_scorer import Pair, documents_of
from benchmarks.pairs.sources import Asked, GivenPairs, prepared_pairs, read_pair_file, read_published, split_given
from benchmarks.pairs.splitting import Split, SplitRule, pairs_checksum
from tests.benchmarks.pairs.linked_corpus import DOC_IDS, write_linked
from tests.benchmarks.pairs.published_sets import write_aan, write_gwikimatch

TRAIN, VALID, TEST = Split.TRAIN, Split.VALID, Split.TEST
SIX = [
    *(Pair("a", "b", True), Pair("a", "c", False)),
    *(Pair("d", "e", True), Pair("d", "f", False)),
    *(Pair("g", "h", True), Pair("h", "i", False)),
]
GIVEN = GivenPairs("pairs.tsv", SIX, [TRAIN, TRAIN, VALID, VALID, TEST, TEST])


def many() -> GivenPairs:
    rng = np.random.default_rng(0)
    edges = sorted({tuple(sorted(rng.choice(40, 2, replace=False).tolist())) for _ in range(400)})
    pairs = [Pair(f"d{one}", f"d{other}", at % 2 == 1) for at, (one, other) in enumerate(edges)]
    return GivenPairs("many.tsv", pairs, [None] * len(pairs))


def test_splits_are_taken_as_given() -> None:
    splits = split_given(GIVEN, SplitRule.GIVEN, seed=0)
    assert splits == {TRAIN: tuple(SIX[:2]), VALID: tuple(SIX[2:4]), TEST: tuple(SIX[4:])}


def test_splits_are_made_over_documents_or_pairs() -> None:
    by_document, by_pair = (split_given(many(), rule, seed=1) for rule in (SplitRule.DOCUMENT, SplitRule.PAIR))
    named = [documents_of(by_document[split]) for split in Split]
    assert len(set.union(*named)) == sum(map(len, named))
    n_pairs = sum(map(len, by_pair.values()))
    assert [len(by_pair[split]) for split in (TEST, VALID)] == [n_pairs // 10, n_pairs // 10]
    assert documents_of(by_pair[TEST]) <= documents_of(by_pair[TRAIN])


def test_the_first_of_either_kind_are_kept() -> None:
    whole, few = (split_given(many(), SplitRule.PAIR, seed=1, most=most) for most in (None, 2))
    for split in Split:
        assert [pair.is_match for pair in few[split]].count(True) == 2
        matches = [pair for pair in whole[split] if pair.is_match]
        assert [pair for pair in few[split] if pair.is_match] == matches[:2]


def test_a_pair_that_stands_twice_is_in_one_split_unless_it_is_given_so() -> None:
    twice = many()
    turned = [Pair(pair.second, pair.first, pair.is_match) for pair in twice.pairs]
    doubled = GivenPairs("many.tsv", [*twice.pairs, *turned], [None] * (2 * len(turned)))
    assert split_given(doubled, SplitRule.PAIR, seed=1) == split_given(twice, SplitRule.PAIR, seed=1)
    again = GivenPairs("pairs.tsv", [*SIX, SIX[0]], [*GIVEN.splits, TEST])
    assert split_given(again, SplitRule.GIVEN, seed=0)[TEST] == (*SIX[4:], SIX[0])


def test_pairs_that_cannot_be_split_raise_an_error() -> None:
    with pytest.raises(DatasetError, match=r"many.tsv has no column split; add it, or take --split document or --spl"):
        split_given(many(), SplitRule.GIVEN, seed=0)
    one_kind = GivenPairs("pairs.tsv", SIX[:5], GIVEN.splits[:5])
    with pytest.raises(DatasetError, match=r"split test of pairs.tsv has 1 matches among 1 pairs by the rule given"):
        split_given(one_kind, SplitRule.GIVEN, seed=0)


FORTY = [f"d{number}" for number in range(40)]


def written(folder: Path, text: str) -> Path:
    (folder / "pairs.tsv").write_text(text)
    return folder / "pairs.tsv"


def test_pairs_and_their_splits_are_read_in_any_order_of_columns(tmp_path: Path) -> None:
    given = read_pair_file(written(tmp_path, "label\tid1\tsplit\tid2\n1\ta\ttrain\tb\n0\tc\ttest\ta\n"), "abc")
    assert given.pairs == [Pair("a", "b", True), Pair("c", "a", False)]
    assert given.splits == [Split.TRAIN, Split.TEST]
    assert given.place == str(tmp_path / "pairs.tsv")


def test_splits_may_be_missing_and_the_file_packed(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv.gz"
    path.write_bytes(gzip.compress("\ufeffid1\tid2\tlabel\r\nd1\td2\t1\r\n\r\n".encode()))
    given = read_pair_file(path, FORTY)
    assert (given.pairs, given.splits) == ([Pair("d1", "d2", True)], [None])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("id1\tid2\nd1\td2\n", "pairs.tsv lacks the column label; its lines must be: id1 <tab> id2 <tab> label"),
        ("id1\tid2\tlabel\nd1\td2\n", "pairs.tsv:2 has 2 columns, not 3; it must be id1, id2, label by tabs"),
        ("id1\tid2\tlabel\nd1\td2\tyes\n", "pairs.tsv:2 has the ids 'd1', 'd2' and the label 'yes'; it must be"),
        ("id1\tid2\tlabel\nd1\td1\t1\n", "pairs.tsv:2 has the ids 'd1', 'd1'"),
        ("id1\tid2\tlabel\nd1\tx\t1\n", "pairs.tsv:2 names 'x', which is none of 40 documents of the corpus; add it"),
        ("id1\tid2\tlabel\nd1\td2\t1\nd2\td1\t0\n", "pairs.tsv:3 has the pair d2, d1 that stands in .*pairs.tsv:2, in"),
        ("id1\tid2\tlabel\tsplit\nd1\td2\t1\tdev\n", "the split 'dev'; it must be one of test, valid, train"),
    ],
)
def test_the_error_for_a_bad_line_names_it(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(FormatError, match=told):
        read_pair_file(written(tmp_path, text), FORTY)


def test_a_file_that_is_not_text_raises_an_error(tmp_path: Path) -> None:
    (tmp_path / "latin.tsv").write_bytes("id1\tid2\tlabel\nä\tb\t1\n".encode("latin-1"))
    with pytest.raises(FormatError, match=r"latin.tsv:2 is not UTF-8"):
        read_pair_file(tmp_path / "latin.tsv", FORTY)
    with pytest.raises(FormatError, match="cannot be read"):
        read_pair_file(tmp_path, FORTY)


def test_pairs_of_aan_hold_their_texts_and_splits(tmp_path: Path) -> None:
    read = read_published(write_aan(tmp_path / "tsv"), tmp_path / "nothing")
    assert Counter(read.given.splits) == {Split.TRAIN: 8, Split.VALID: 8, Split.TEST: 8}
    assert read.given.pairs[:2] == [Pair("P000", "P001", True), Pair("P001", "P002", False)]
    assert len(read.documents) == 27
    assert read.documents["P100"].text == "parsing trees grammar\nparsing trees grammar paper 0"
    assert read.n_lost == dict.fromkeys(Split, 1)
    assert [path.name.split(".")[1] for path in read.files] == ["train", "eval", "test"]


def test_pairs_of_gwikimatch_have_their_texts_from_a_file(tmp_path: Path) -> None:
    texts = tmp_path / "articles.jsonl"
    folder = write_gwikimatch(tmp_path / "tsv", texts, missing=["eval_A1"])
    read = read_published(folder, texts)
    assert Counter(read.given.splits) == {Split.TRAIN: 6, Split.VALID: 4, Split.TEST: 6}
    assert read.n_lost == {Split.TRAIN: 0, Split.VALID: 2, Split.TEST: 0}
    assert read.given.pairs[0] == Pair("Train A0", "Train A1", True)
    assert read.documents["Train A0"].text.strip() == "about train_A0"
    assert read.files[0] == texts


def test_a_folder_of_something_else_raises_an_error(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"holds neither new_aan_pairs.train.tsv.* nor the files of GWikiMatch; name"):
        read_published(tmp_path, tmp_path)
    folder = write_gwikimatch(tmp_path / "tsv", tmp_path / "articles.jsonl")
    with pytest.raises(FormatError, match="absent is no file, and GWikiMatch holds no texts; name the file of its art"):
        read_published(folder, tmp_path / "absent")


AAN = Asked("aan", SplitRule.DOCUMENT, None, seed=0, most=None)


def test_only_documents_of_pairs_are_kept(tmp_path: Path) -> None:
    dataset = write_linked(tmp_path / "linked")
    prepared = prepared_pairs(str(dataset.corpus.parent), DATA, AAN)
    named = {doc_id for pairs in prepared.splits.values() for doc_id in documents_of(pairs)}
    assert list(prepared.documents) == [doc_id for doc_id in DOC_IDS if doc_id in named]
    assert (prepared.task, prepared.dataset) == ("linked", f"linked@{checksum(dataset)}")
    assert prepared.n_lost == dict.fromkeys(Split, 0)


def test_a_file_of_pairs_goes_with_any_file_of_documents(tmp_path: Path) -> None:
    corpus = write_linked(tmp_path / "linked").corpus
    lines = [f"{one}\t{other}\t{at % 2}" for at, (one, other) in enumerate(pairwise(DOC_IDS))]
    (tmp_path / "pairs.tsv").write_text("\n".join(["id1\tid2\tlabel", *lines, ""]))
    asked = Asked("aan", SplitRule.PAIR, tmp_path / "pairs.tsv", seed=0, most=None)
    prepared = prepared_pairs(str(corpus), DATA, asked)
    assert prepared.dataset == f"corpus@{files_checksum([corpus, tmp_path / 'pairs.tsv'])}"
    assert sum(map(len, prepared.splits.values())) == len(lines)
    with pytest.raises(DatasetError, match=r"is no task, no folder with corpus\.jsonl\.gz and no file of documents"):
        prepared_pairs(str(tmp_path / "nowhere"), DATA, asked)


@pytest.mark.parametrize("rule", [SplitRule.GIVEN, SplitRule.PAIR])
def test_pairs_of_published_sets_come_with_their_documents(tmp_path: Path, rule: SplitRule) -> None:
    aan, texts = write_aan(tmp_path / "aan", 20), tmp_path / "articles.v1.jsonl"
    wiki = write_gwikimatch(tmp_path / "wiki", texts)
    of_aan = prepared_pairs("lra", DATA, Asked("aan", rule, aan, seed=0, most=None))
    assert (of_aan.task, sum(map(len, of_aan.splits.values())), len(of_aan.documents)) == ("lra", 60, 63)
    if rule is SplitRule.GIVEN:
        of_wiki = prepared_pairs(str(texts), DATA, Asked("aan", rule, wiki, seed=0, most=None))
        assert of_wiki.dataset.startswith("articles@")
        assert {split: len(pairs) for split, pairs in of_wiki.splits.items()} == dict.fromkeys(Split, 6)


def test_hard_negatives_are_ranked_by_bm25(tmp_path: Path) -> None:
    folder = str(write_linked(tmp_path / "linked").corpus.parent)
    easy, hard = (prepared_pairs(folder, DATA, replace(AAN, protocol=name)).splits for name in ("aan", "aan-hard"))
    topics = [
        [int(pair.first[1:]) % 9 == int(pair.second[1:]) % 9 for pair in splits[Split.TRAIN] if not pair.is_match]
        for splits in (easy, hard)
    ]
    assert sum(topics[0]) / len(topics[0]) < sum(topics[1]) / len(topics[1])


@pytest.mark.slow
@pytest.mark.needs_data
@pytest.mark.parametrize(
    ("name", "n_pairs", "checksum"),
    [
        ("proposals", (644, 752, 4098), "2481216bc78c"),
        ("clscisumm", (478, 516, 2056), "ef4399639724"),
        ("wikipedia_seealso", (902, 972, 2492), "4e48c51bb360"),
        ("rfc", (1968, 2150, 31428), "14768eff493c"),
    ],
)
def test_the_pairs_of_the_shared_corpora_are_those_that_were_measured(
    name: str, n_pairs: tuple[int, ...], checksum: str
) -> None:
    splits = prepared_pairs(name, DATA, AAN).splits
    assert tuple(len(splits[split]) for split in Split) == n_pairs
    assert pairs_checksum(splits) == checksum
