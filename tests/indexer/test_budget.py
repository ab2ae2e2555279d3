"""Limits of a run, batch sizes, and the measured speed of an encoder."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from engine.encoders.encoder import EncodedDocument, SegmentedDocument
from engine.encoders.trainable import MeanEncoder
from engine.errors import BudgetExceeded
from indexer.building.budget import (
    SMALLEST_CHARS,
    batch_bytes,
    fit_batches,
    is_on_gpu,
    limited_vram,
    refuse_memory,
    tokens_per_second,
)
from indexer.building.builder import Settings
from indexer.building.pipeline import BATCH_CHARS
from tests.fakes import FakeEncoder, make_document


def test_without_a_limit_batches_have_the_usual_size() -> None:
    assert fit_batches(None, 384) == BATCH_CHARS
    assert not Settings().is_limited
    assert Settings(disk_bytes=0).is_limited


def test_batches_leave_half_of_the_memory_to_the_index_and_shrink_with_it() -> None:
    lefts = range(60_000_000, 0, -1_000_000)
    chosen = [fit_batches(left, 384) for left in lefts]
    assert (chosen[0], chosen[-1]) == (BATCH_CHARS, SMALLEST_CHARS)
    assert sorted(chosen, reverse=True) == chosen
    for left, batch_chars in zip(lefts, chosen, strict=True):
        assert 2 * batch_bytes(batch_chars, 384) <= left or batch_chars == SMALLEST_CHARS


@pytest.mark.parametrize(
    ("has_encoded", "advice"),
    [
        (False, "allow at least 502M and room to encode, see longmatch index --dry-run, or take a smaller --encoder"),
        (True, "allow at least 502M, or take a smaller --encoder"),
    ],
)
def test_too_little_memory_for_the_encoder_is_refused(has_encoded: bool, advice: str) -> None:
    with pytest.raises(BudgetExceeded) as raised:
        refuse_memory(300_000_000, 500_000_000, 384, has_encoded=has_encoded)
    smallest = 500_000_000 + batch_bytes(SMALLEST_CHARS, 384)
    assert str(raised.value) == (
        f"program and encoder take 500 MB, with the smallest batches {smallest / 1e6:.0f} MB; --memory allows 300 MB: "
        f"{advice}"
    )
    refuse_memory(502_000_000, 500_000_000, 384)
    refuse_memory(None, 500_000_000, 384)


def test_the_bytes_of_all_parameters_of_the_model_are_counted(mean_encoder: MeanEncoder) -> None:
    assert mean_encoder.weights_bytes >= 4 * sum(one.numel() for one in mean_encoder.module.parameters())
    assert FakeEncoder().weights_bytes == 0


def test_on_the_cpu_a_limit_of_gpu_memory_has_no_effect(mean_encoder: MeanEncoder) -> None:
    assert not is_on_gpu(mean_encoder)
    with limited_vram(mean_encoder, 1):
        pass


def test_parameters_that_do_not_fit_are_refused_with_the_limit_and_the_next_step(
    mean_encoder: MeanEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mean_encoder, "device", "cuda:1")
    assert is_on_gpu(mean_encoder)
    with pytest.raises(BudgetExceeded) as raised, limited_vram(mean_encoder, 1000):
        pytest.fail("it was begun")
    assert str(raised.value).endswith(
        "MB, --vram allows 0 MB; allow more than 1M, take a smaller --encoder, or use --device cpu"
    )


@pytest.mark.parametrize(("enough_seconds", "largest"), [(1000.0, 8 * 4096), (0.0, 2 * 4096)])
def test_speed_is_that_of_a_large_group_unless_encoding_is_slow(
    enough_seconds: float, largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexer.building.budget._ENOUGH_SECONDS", enough_seconds)
    long = " ".join(f"word{number}" for number in range(5_000))
    documents = [FakeEncoder().segment(make_document(f"long{number}", long)) for number in range(12)]
    groups: list[int] = []

    class Counting(FakeEncoder):
        def encode_segmented(self, documents: Sequence[SegmentedDocument]) -> list[EncodedDocument]:
            groups.append(sum(document.coverage.tokens_read for document in documents))
            return super().encode_segmented(documents)

    tokens_per_second(documents, Counting())
    assert groups[-1] == largest


def test_of_a_long_document_only_the_first_chunks_are_encoded() -> None:
    long = make_document("long", " ".join(f"word{number}" for number in range(20_000)))
    read: list[int] = []

    class Counting(FakeEncoder):
        def _one(self, segmented: SegmentedDocument) -> EncodedDocument:
            read.append(segmented.coverage.tokens_read)
            return super()._one(segmented)

    tokens_per_second([FakeEncoder().segment(long)], Counting())
    assert read == [512, 4096]
