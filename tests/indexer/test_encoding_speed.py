"""The speed of an encoder is measured on whole chunks of a few documents."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from engine.encoders.encoder import EncodedDocument, SegmentedDocument
from indexer.building.budget import tokens_per_second
from tests.fakes import FakeEncoder, make_document


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
