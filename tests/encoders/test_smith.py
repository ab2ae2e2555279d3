"""SMITH as an encoder: sentences into blocks, blocks into windows, coverage, towers, precision."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from engine.encoders.encoder import Variant
from engine.encoders.smith import BLOCK_BUDGET, BlockFilling, SmithEncoder, document_windows, fill_truncating
from engine.encoders.smith_config import Combination, SmithConfig, match_bert
from engine.encoders.trainable import TOKEN_BUDGET
from engine.errors import EncoderError
from engine.text.document import Document
from engine.text.segmentation import Chunk, TokenWindow
from tests.encoders.tiny import MATCHBERT, SMITH, SMITH_PAPER, SMITH_RELEASED, tiny_smith
from tests.fakes import make_document

CONFIGS = [SMITH, replace(SMITH, combination=Combination.ATTENTION), SMITH_PAPER, SMITH_RELEASED, MATCHBERT]
IDS = ["fixed", "attention", "paper", "released", "matchbert"]


@pytest.fixture(scope="module")
def smith(bert_folder: Path) -> SmithEncoder:
    return tiny_smith(bert_folder)


@contextmanager
def record_shapes(module: nn.Module, passes: list[tuple[int, ...]]) -> Iterator[None]:
    """Record the shapes of the inputs of a module in `passes`."""

    def note(_: nn.Module, arguments: tuple[Tensor, ...]) -> None:
        passes.append(tuple(arguments[0].shape))

    handle = module.register_forward_pre_hook(note)
    try:
        yield
    finally:
        handle.remove()


@pytest.mark.parametrize(("config", "separators"), [(SMITH, 1), (SMITH_PAPER, 2), (SMITH_RELEASED, 2), (MATCHBERT, 1)])
def test_the_papers_blocks_end_with_two_separators(bert_folder: Path, config: SmithConfig, separators: int) -> None:
    encoder = tiny_smith(bert_folder, config)
    ids, mask = encoder.pad([[7, 8], [9]])
    (cls,), (sep,), padding = encoder.tokenizer.prefix, encoder.tokenizer.suffix, encoder.tokenizer.pad_id
    assert ids.tolist() == [[cls, 7, 8, *[sep] * separators], [cls, 9, *[sep] * separators, padding]]
    assert mask.tolist() == [[True] * (3 + separators), [True] * (2 + separators) + [False]]


LONG_SENTENCE = "The old fox and the old dog in the old house of the old river. "


def test_coverage_counts_the_tokens_that_truncation_read(bert_folder: Path) -> None:
    tokens = 16  # in the sentence; a block holds 9 of them
    few = tiny_smith(bert_folder, SMITH_PAPER).segment(make_document("d", LONG_SENTENCE * 2)).coverage
    assert (few.tokens_read, few.tokens_total) == (2 * 9, 2 * tokens)
    many = tiny_smith(bert_folder, SMITH_RELEASED).segment(make_document("d", LONG_SENTENCE * 9)).coverage
    assert (many.tokens_read, many.tokens_total) == (4 * 9, 9 * tokens)


def test_the_papers_matchbert_reads_the_first_tokens(bert_folder: Path) -> None:
    document = make_document("d", [("", "fox dog river "), ("", "old house " * 20)])
    segmented = tiny_smith(bert_folder, replace(MATCHBERT, variant=Variant.PAPER)).segment(document)
    assert segmented.coverage.tokens_read == 10
    assert [chunk.n_tokens for chunk in segmented.chunks] == [3, 7]
    assert tiny_smith(bert_folder, MATCHBERT).segment(document).coverage.share == 1


def test_the_document_is_the_token_weighted_mean_of_its_windows(smith: SmithEncoder, documents: list[Document]) -> None:
    segmented = smith.segment(documents[0])
    windows = document_windows(segmented.chunks, 4)
    assert len(windows) > 2
    total = torch.zeros(32)
    with torch.no_grad():
        states = smith.states([segmented])[0]
        for window in windows:
            blocks = states[window.first : window.stop]
            vectors, _ = smith.module.documents(blocks[None], torch.ones(1, len(blocks), dtype=torch.bool))
            total += vectors[0] * sum(len(ids) for ids in segmented.token_ids[window.first : window.stop])
    np.testing.assert_allclose(smith.encode([documents[0]])[0].document, total / total.norm(), atol=1e-5)


def test_a_document_of_one_window_is_its_first_block(smith: SmithEncoder) -> None:
    encoded = smith.encode([make_document("d", "One two three four five six. Old fox and young dog. Light.")])[0]
    assert 1 < len(encoded.chunks) <= 4
    np.testing.assert_allclose(encoded.document, encoded.chunks[0], atol=1e-6)


@pytest.mark.slow
def test_no_pass_is_longer_than_its_budget_however_long_the_document(smith: SmithEncoder) -> None:
    segmented = smith.segment(make_document("d", "fox. " * 40_000))
    passes: list[tuple[int, ...]] = []
    windows: list[tuple[int, ...]] = []
    document = smith.module.document
    assert document is not None
    with torch.inference_mode(), record_shapes(smith.module.sentence, passes), record_shapes(document, windows):
        embedded = smith.embed([segmented])
    assert segmented.coverage.share == 1
    assert embedded.chunks.shape == (1, len(segmented.chunks), 32)
    assert max(n * length for n, length in passes) <= TOKEN_BUDGET
    assert max(n * length for n, length, _ in windows) <= BLOCK_BUDGET
    assert sum(n for n, _ in passes) == len(segmented.chunks)
    assert max(length for _, length, _ in windows) == SMITH.max_blocks


def test_the_released_variant_has_one_tower_for_both_sides(bert_folder: Path, documents: list[Document]) -> None:
    encoder = tiny_smith(bert_folder, SMITH_RELEASED)
    assert len(encoder.module.heads) == 1  # no second layer that nothing trains and no search uses
    query, target = encoder.encode([documents[0], documents[0]])
    assert float(query.document @ target.document) == pytest.approx(1, abs=1e-6)
    assert query.chunks.min() >= 0  # the ReLU


@pytest.mark.parametrize("config", CONFIGS, ids=IDS)
def test_mixed_precision_gives_nearly_the_same_vectors(
    bert_folder: Path, documents: list[Document], config: SmithConfig
) -> None:
    encoder = tiny_smith(bert_folder, config)
    segmented = [encoder.segment(document) for document in documents]
    with torch.no_grad():
        full = encoder.embed(segmented)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = encoder.embed(segmented)
        (mixed.documents[0] @ mixed.documents[2]).backward()
    assert mixed.documents.dtype == mixed.chunks.dtype == torch.float32
    assert float((full.documents * mixed.documents.detach()).sum(1).min()) > 0.99


def test_a_tokenizer_without_separators_is_refused(bert_folder: Path, tmp_path: Path) -> None:
    for file in bert_folder.glob("tokenizer*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    tokenizer = json.loads((tmp_path / "tokenizer.json").read_text())
    tokenizer["post_processor"] = None
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(EncoderError) as raised:
        SmithEncoder.create(tmp_path, SMITH, device="cpu")
    assert str(raised.value) == (
        f"the tokenizer of {tmp_path} puts 0 tokens before a text and 0 after it, SMITH reads [CLS] text [SEP]; "
        "take a BERT's tokenizer"
    )


def spans(windows: list[TokenWindow]) -> list[tuple[int, int]]:
    return [(window.first, window.stop) for window in windows]


def ends(lengths: list[int]) -> list[int]:
    return [sum(lengths[: number + 1]) for number in range(len(lengths))]


def released_by_hand(lengths: list[int], capacity: int) -> list[list[int]]:
    """The released filling, over lists of token numbers: append, and cut when the block is written."""
    blocks: list[list[int]] = []
    block: list[int] = []
    number = 0
    for length in lengths:
        sentence = list(range(number, number + length))
        number += length
        if block and len(block) + length > capacity:
            blocks.append(block[:capacity])
            block = []
        block += sentence
    return [*blocks, block[:capacity]]


@given(st.lists(st.integers(1, 20), min_size=1, max_size=12), st.integers(1, 12))
def test_truncated_filling_equals_that_of_the_released_code(lengths: list[int], capacity: int) -> None:
    windows = fill_truncating(ends(lengths), capacity)
    assert [list(range(window.first, window.stop)) for window in windows] == released_by_hand(lengths, capacity)


@pytest.mark.parametrize(
    ("config", "filled"),
    [
        (
            SmithConfig(Variant.PAPER, block_tokens=8, max_blocks=3),
            [([5, 5], [(0, 5), (5, 10)]), ([5, 5, 5], [(0, 5)]), ([5], [])],
        ),
        (match_bert(Variant.PAPER, block_tokens=12), [([4, 3], [(0, 7)]), ([], []), ([9], [(0, 3)]), ([2], [])]),
    ],
    ids=["max_blocks of a document", "first tokens of a document"],
)
def test_the_papers_read_the_beginning_of_a_document_across_its_sections(
    config: SmithConfig, filled: list[tuple[list[int], list[tuple[int, int]]]]
) -> None:
    filling = BlockFilling(config)
    for lengths, expected in filled:
        assert spans(filling(ends(lengths))) == expected


def blocks(sections: list[int]) -> list[Chunk]:
    return [Chunk(number, 0, 1, 1) for number, count in enumerate(sections) for _ in range(count)]


def test_windows_are_cut_between_sections_longer_ones_split_and_over_long_sentences_cut() -> None:
    assert spans(document_windows(blocks([3, 2, 4, 5]), 6)) == [(0, 5), (5, 9), (9, 14)]
    assert spans(document_windows(blocks([2, 9, 1]), 4)) == [(0, 2), (2, 6), (6, 10), (10, 12)]
    assert spans(fill_truncating(ends([3, 2, 9, 1]), 5)) == [(0, 5), (5, 10), (14, 15)]


@given(st.lists(st.integers(1, 30), min_size=1, max_size=8), st.integers(1, 12))
def test_windows_hold_every_block_once(sections: list[int], most: int) -> None:
    windows = document_windows(blocks(sections), most)
    assert windows[0].first == 0
    assert windows[-1].stop == sum(sections)
    assert all(one.stop == other.first for one, other in pairwise(windows))
    assert all(1 <= window.stop - window.first <= most for window in windows)
