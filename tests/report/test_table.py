"""Notes about tokens read and documents encoded, as the table and the report show them."""

from __future__ import annotations

import pytest

from engine.report.table import coverage_note, encoding_lines
from engine.result import Encoding
from engine.text.spans import Coverage

NOW = Encoding(
    n_missing=0,
    n_candidates=5,
    n_encoded=5,
    n_encoded_now=2,
    tokens_now=9_000,
    seconds_now=4.5,
    tokens_missing=0,
    seconds_missing=0.0,
)


@pytest.mark.parametrize(
    ("coverage", "note"),
    [
        (Coverage(0, 0), "searched by words alone"),
        (Coverage(0, 500), "searched by words alone"),
        (Coverage(500, 500), "all 500 tokens read"),
        (Coverage(500, 500, 3), "all 500 tokens read, up to 3 chunks pooled into one"),
        (Coverage(250, 1_000), "250 of 1,000 tokens read (25.0%)"),
    ],
)
def test_a_note_shows_how_many_tokens_were_read(coverage: Coverage, note: str) -> None:
    assert coverage_note(coverage) == note


def test_documents_without_vectors_are_counted_where_there_are_some() -> None:
    assert encoding_lines(NOW) == ["5 of 5 candidates encoded, 2 of them now"]
    some = Encoding(7, 5, 5, 0, 0, 0.0, 12_000, None)
    assert encoding_lines(some) == [
        "5 of 5 candidates encoded",
        "7 documents scored by words alone: about 12,000 tokens to encode",
    ]
