from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.datasets import DATA, checksum
from benchmarks.pair_scorer import documents_of
from benchmarks.pairs.building import Asked, prepared_pairs
from benchmarks.pairs.splitting import Split, SplitRule, pairs_checksum
from tests.benchmarks.pairs.linked_corpus import DOC_IDS, write_linked

AAN = Asked("aan", SplitRule.DOCUMENT, seed=0, most=None)


def test_only_documents_of_pairs_are_kept(tmp_path: Path) -> None:
    dataset = write_linked(tmp_path / "linked")
    prepared = prepared_pairs(str(dataset.corpus.parent), DATA, AAN)
    named = {doc_id for pairs in prepared.splits.values() for doc_id in documents_of(pairs)}
    assert list(prepared.documents) == [doc_id for doc_id in DOC_IDS if doc_id in named]
    assert (prepared.task, prepared.dataset) == ("linked", f"linked@{checksum(dataset)}")
    assert prepared.n_lost == dict.fromkeys(Split, 0)


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
