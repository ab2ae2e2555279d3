from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from benchmarks.speed.memory import TimedWriter, slope_kib
from benchmarks.synthetic import LONG, SHORT, FreeEncoder, Lengths, documents, vocabulary
from benchmarks.tiny_encoder import frequent_words
from indexer.building.pipeline import Pipeline


def test_the_slope_is_that_of_the_last_three_quarters() -> None:
    warm_up = [(number, 100.0 + number) for number in range(0, 250, 10)]
    steady = [(number, 350.0 + number / 1024) for number in range(250, 1001, 10)]
    assert slope_kib(warm_up + steady) == pytest.approx(1000.0)
    assert slope_kib([]) == slope_kib([(5, 1.0), (5, 9.0)]) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize(("lengths", "median"), [(SHORT, 150), (LONG, 3000)], ids=["short", "long"])
def test_synthetic_documents_are_seeded_and_as_long_as_they_should_be(lengths: Lengths, median: int) -> None:
    made = list(documents(lengths, 200, seed=3))
    assert made[:5] == list(documents(lengths, 5, seed=3)) != list(documents(lengths, 5, seed=4))
    assert np.median([document.metadata["words"] for document in made]) == pytest.approx(median, rel=0.15)
    for document in made[:5]:
        ends = [0, *(section.stop for section in document.sections)]
        assert [section.start for section in document.sections] == ends[:-1]
        assert ends[-1] == len(document.text)


def test_the_free_encoder_covers_every_character_and_its_rows_are_unit() -> None:
    document = next(documents(LONG, 1))
    encoded = FreeEncoder().encode([document])[0]
    spans = encoded.chunk_spans
    assert (spans[0].start, spans[-1].stop) == (0, len(document.text))
    assert all(a.stop == b.start for a, b in pairwise(spans))
    np.testing.assert_allclose(np.linalg.norm(encoded.chunks, axis=1), 1, rtol=1e-5)


def test_a_timed_writer_writes_as_any_other(tmp_path: Path) -> None:
    encoder = FreeEncoder()
    with TimedWriter(tmp_path / "x.lm") as writer:
        writer.claim({"name": encoder.name, "fingerprint": encoder.fingerprint, "width": encoder.width})
        report = Pipeline(writer, encoder).run(documents(SHORT, 20))
        assert (report.n_added, len([number for number, _ in writer.sources()])) == (20, 20)
        assert 0 < writer.commit_seconds < report.seconds


def test_frequent_words_come_most_frequent_first() -> None:
    assert frequent_words(["b a, b", "C c? a b"], 2) == ["b", "a"]
    assert len(set(vocabulary())) == len(vocabulary()) == 5000
