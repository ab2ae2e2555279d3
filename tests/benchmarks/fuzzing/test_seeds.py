from __future__ import annotations

import pytest

from benchmarks.fuzzing.seeds import seeds
from engine.document import Document
from engine.readers import FORMATS, read_bytes


@pytest.mark.parametrize("suffix", seeds())
def test_a_seed_is_read_whole(suffix: str) -> None:
    found = list(read_bytes(seeds()[suffix], f"a{suffix}"))
    assert all(isinstance(one, Document) and "A pump moves 12 litres" in one.text for one in found)
    assert len(found) == (4 if "jsonl" in suffix else 1)


def test_every_reader_has_a_seed() -> None:
    known = {form.name for suffix, form in FORMATS.items() if any(suffix in f"{seed}." for seed in seeds())}
    assert {form.name for form in FORMATS.values()} == known
