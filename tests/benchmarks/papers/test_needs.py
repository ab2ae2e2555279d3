"""Documents that variants could not differ on are left out, and a comparison without others is refused."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.datasets import DatasetError
from benchmarks.papers.comparison import Conditions
from benchmarks.papers.encoders import Matched, PairData
from benchmarks.papers.needs import Blocks, Need, Sections
from benchmarks.papers.papers import comparisons_of
from engine.encoders.smith.encoder import SmithEncoder
from indexer.origin import Origin
from indexer.training.start import starting_encoder
from tests.benchmarks.papers.cases import conditions, write_citations
from tests.fakes import make_document

THREE = [("One", "The old fox."), ("", " "), ("Two", "A dark house."), ("Three", "It runs.")]


@pytest.fixture
def given(tmp_path: Path, bert_folder: Path, origin: Origin) -> Conditions:
    write_citations(tmp_path / "data")
    return conditions(tmp_path, bert_folder, origin)


@pytest.mark.parametrize(
    ("need", "is_met"), [(Sections(3, 11), True), (Sections(4, 1), False), (Sections(1, 12), False)]
)
def test_sections_count_where_they_have_a_word(need: Need, is_met: bool) -> None:
    assert need.is_met(make_document("d", THREE), "") is is_met


def test_blocks_are_those_that_a_published_smith_fills(bert_folder: Path) -> None:
    document = make_document("d", "The old fox runs. " * 40)  # 5 tokens a sentence; a block has room for 9
    assert Blocks(40, 12).is_met(document, str(bert_folder))
    assert not Blocks(41, 12).is_met(document, str(bert_folder))
    assert not Blocks(1, 12).is_met(make_document("d", " "), str(bert_folder))


def test_pairs_of_documents_that_fall_short_are_left_out(given: Conditions) -> None:
    whole = PairData("clscisumm").open(given)
    sizes = sorted(len(document.text.split()) for document in whole.documents.values())
    assert set(sizes) == {50}
    with pytest.raises(DatasetError) as raised:
        PairData("clscisumm", need=Sections(3, words=10)).open(given)
    assert str(raised.value).endswith(
        "has at least 3 sections and 10 words in the first 50 words of both documents, so that the variants are one "
        "and the same; raise max_words: --scale max_words=NUMBER"
    )
    kept = PairData("clscisumm", need=Sections(1, words=50)).open(given)
    for pairs in kept.splits.values():
        assert pairs and 2 * sum(pair.is_match for pair in pairs) == len(pairs)
    assert {len(document.sections) for document in kept.documents.values()} == {1}


def test_settings_hold_the_needed_sections_and_words(given: Conditions) -> None:
    settings = PairData("clscisumm", need=Sections(1, words=50)).settings(given)
    assert (settings["least_sections"], settings["least_words"]) == (1, 50)


def test_every_number_of_blocks_reads_another_part_of_every_document(given: Conditions) -> None:
    """With documents truncated to 300 words, 32, 48 and 64 blocks would be the same model."""
    comparison = comparisons_of("smith")["blocks-aan"]
    systems = [variant.system for variant in comparison.variants]
    needed = {system.data.need for system in systems if isinstance(system, Matched)}
    assert needed == {Blocks(64, 32)}
    sentence = "The quick brown fox jumps over the lazy dog, and a dark house stands by the river. "
    long = make_document("long", sentence * 64)
    assert Blocks(64, 32).is_met(long, given.encoder)
    read = []
    for system in systems:
        assert isinstance(system, Matched)
        start = system.recipe_of(given).start
        start = replace(start, new=replace(start.new, sizes={**start.new.sizes, "width": "32"})) if start.new else start
        encoder = starting_encoder(start, [], seed=0, device="cpu", is_resumed=False, log=lambda line: None).encoder
        assert isinstance(encoder, SmithEncoder)
        read.append(encoder.segment(long).coverage.tokens_read)
    assert all(fewer < more for fewer, more in pairwise(read))
