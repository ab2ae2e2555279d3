from __future__ import annotations

from benchmarks.prepare import label_of


def test_an_encoder_is_named_with_its_fingerprint() -> None:
    assert label_of("folder/of/my model", "f" * 32) == "my_model@ffffffffffff"
