"""SMITH as an encoder: blocks, windows, coverage, towers, precision, saving."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from engine.encoders.encoder import Variant, fingerprint_of
from engine.encoders.files import CONFIG_FILE, tokenizer_sha256
from engine.encoders.loading import load_trainable
from engine.encoders.smith.config import Combination, SmithConfig
from engine.encoders.smith.encoder import BLOCK_BUDGET, TOKEN_BUDGET, WEIGHTS_FILE, SmithEncoder, document_windows
from engine.encoders.trainable import module_sha256
from engine.errors import EncoderError
from engine.text.document import Document
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


def test_wrapping_reads_every_token(bert_folder: Path) -> None:
    encoder = tiny_smith(bert_folder)
    document = make_document("d", LONG_SENTENCE * 9)
    segmented = encoder.segment(document)
    whole = encoder.tokenizer.tokenize([document.text])[0][0]
    assert [token for ids in segmented.token_ids for token in ids] == whole
    assert segmented.coverage.share == 1
    assert len(segmented.chunks) > SMITH.max_blocks


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


def test_identical_documents_score_one(smith: SmithEncoder, documents: list[Document]) -> None:
    first, second = smith.encode([documents[0], documents[0]])
    assert float(first.document @ second.document) == pytest.approx(1, abs=1e-6)


def test_the_released_variant_has_one_tower_for_both_sides(bert_folder: Path, documents: list[Document]) -> None:
    encoder = tiny_smith(bert_folder, SMITH_RELEASED)
    assert len(encoder.module.heads) == 1  # no second layer that nothing trains and no search uses
    query, target = encoder.encode([documents[0], documents[0]])
    assert float(query.document @ target.document) == pytest.approx(1, abs=1e-6)
    assert query.chunks.min() >= 0  # the ReLU


def test_every_layer_of_the_released_variant_is_trained_by_pairs(bert_folder: Path, documents: list[Document]) -> None:
    encoder = tiny_smith(bert_folder, SMITH_RELEASED)
    embedded = encoder.embed([encoder.segment(document) for document in documents])
    (embedded.documents[0] @ embedded.documents[1] - embedded.documents[0] @ embedded.documents[2]).backward()
    assert all(weight.grad is not None and weight.grad.any() for weight in encoder.module.heads.parameters())


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


def test_the_fingerprint_is_of_settings_weights_and_tokenizer(smith: SmithEncoder) -> None:
    settings = asdict(smith.config)
    del settings["dropout"]
    read_by = {"weights": module_sha256(smith.module), "tokenizer": tokenizer_sha256(smith.tokenizer.folder)}
    assert smith.fingerprint == fingerprint_of({"encoder": "smith", **settings, **read_by})


def test_rounding_at_loading_keeps_the_fingerprint_and_the_file(smith: SmithEncoder, tmp_path: Path) -> None:
    smith.save_pretrained(tmp_path / "full")
    rounded = load_trainable(str(tmp_path / "full"), device="cpu", dtype=torch.bfloat16)
    assert rounded.fingerprint == smith.fingerprint
    rounded.save_pretrained(tmp_path / "copy")
    assert (tmp_path / "copy" / WEIGHTS_FILE).read_bytes() == (tmp_path / "full" / WEIGHTS_FILE).read_bytes()
    document = make_document("d", "The quick brown fox. " * 9)
    assert float(rounded.encode([document])[0].document @ smith.encode([document])[0].document) > 0.99


def test_weights_are_saved_at_the_given_precision(smith: SmithEncoder, tmp_path: Path) -> None:
    smith.save_pretrained(tmp_path / "half", dtype=torch.bfloat16)
    rounded = load_trainable(str(tmp_path / "half"), device="cpu", dtype=torch.float32)
    assert isinstance(rounded, SmithEncoder)
    for weights, full in zip(rounded.module.parameters(), smith.module.parameters(), strict=True):
        assert torch.equal(weights, full.bfloat16().float())
    rounded.save_pretrained(tmp_path / "full", dtype=torch.float32)
    assert load_trainable(str(tmp_path / "full"), device="cpu").fingerprint == rounded.fingerprint


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_training_changes_the_fingerprint_and_what_is_saved(
    bert_folder: Path, tmp_path: Path, dtype: torch.dtype
) -> None:
    tiny_smith(bert_folder).save_pretrained(tmp_path)
    encoder = load_trainable(str(tmp_path), device="cpu", dtype=dtype)
    assert isinstance(encoder, SmithEncoder)
    before = encoder.fingerprint
    with torch.no_grad():
        encoder.module.heads[0].bias.add_(1)
    trained = encoder.fingerprint
    assert trained != before
    encoder.save_pretrained(tmp_path)
    assert encoder.fingerprint == load_trainable(str(tmp_path), device="cpu").fingerprint == trained


def test_dropout_is_no_part_of_the_fingerprint(bert_folder: Path, smith: SmithEncoder) -> None:
    assert tiny_smith(bert_folder, replace(SMITH, dropout=0.3)).fingerprint == smith.fingerprint
    assert tiny_smith(bert_folder, replace(SMITH, max_blocks=3)).fingerprint != smith.fingerprint


def test_the_card_states_variant_and_sizes(smith: SmithEncoder, tmp_path: Path) -> None:
    smith.save_pretrained(tmp_path)
    card = (tmp_path / "README.md").read_text()
    assert "variant\n`fixed`: 2 layers read blocks of 12 tokens,\n2 layers read up to 4 blocks together" in card


def test_weights_that_do_not_fit_the_configuration_are_refused(smith: SmithEncoder, tmp_path: Path) -> None:
    smith.save_pretrained(tmp_path)
    config = json.loads((tmp_path / CONFIG_FILE).read_text())
    (tmp_path / CONFIG_FILE).write_text(json.dumps({**config, "document_positions": 5}))
    with pytest.raises(EncoderError) as raised:
        load_trainable(str(tmp_path), device="cpu")
    assert str(raised.value) == (
        f"{tmp_path / WEIGHTS_FILE} has document.positions.weight of shape (4, 32), the other files "
        "need (5, 32); save the encoder again"
    )


@pytest.mark.parametrize("content", [None, b"", b"no weights"])
def test_damaged_weights_are_an_encoder_error(smith: SmithEncoder, tmp_path: Path, content: bytes | None) -> None:
    smith.save_pretrained(tmp_path)
    (tmp_path / WEIGHTS_FILE).unlink()
    if content is not None:
        (tmp_path / WEIGHTS_FILE).write_bytes(content)
    with pytest.raises(EncoderError, match=f"^{tmp_path / WEIGHTS_FILE} cannot be read "):
        load_trainable(str(tmp_path), device="cpu")


def test_a_damaged_configuration_names_its_file(smith: SmithEncoder, tmp_path: Path) -> None:
    smith.save_pretrained(tmp_path)
    (tmp_path / CONFIG_FILE).write_text(json.dumps({"encoder": "smith"}))
    with pytest.raises(EncoderError) as raised:
        load_trainable(str(tmp_path), device="cpu")
    assert str(raised.value) == (
        f"{tmp_path / CONFIG_FILE}: variant is None, not one of paper, released, fixed; save the encoder again"
    )


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
