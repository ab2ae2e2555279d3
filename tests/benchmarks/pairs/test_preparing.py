from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.checksums import files_checksum
from benchmarks.datasets import DATA, DatasetError, checksum
from benchmarks.pairs.sources import Asked, prepared_pairs
from benchmarks.pairs.splitting import Split, SplitRule, documents_of, pairs_checksum
from tests.benchmarks.pairs.linked_corpus import DOC_IDS, write_linked
from tests.benchmarks.pairs.published_sets import write_aan, write_gwikimatch

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
