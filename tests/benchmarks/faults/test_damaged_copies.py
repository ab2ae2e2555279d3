from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from benchmarks.faults.damaged_copies import Damage, inflict


def _is_one_bit(before: bytes, after: bytes) -> bool:
    return sum((a ^ b).bit_count() for a, b in zip(before, after, strict=True)) == 1


def _is_one_page(before: bytes, after: bytes) -> bool:
    return after in (bytes(4096) + before[4096:], before[:4096] + bytes(904))


@pytest.mark.parametrize(
    ("damage", "is_as_it_says"),
    [
        (Damage.TRUNCATED, lambda before, after: before.startswith(after) and len(after) < len(before)),
        (Damage.FLIPPED, _is_one_bit),
        (Damage.ZEROED, _is_one_page),
        (Damage.EMPTIED, lambda _, after: after == b""),
    ],
)
def test_each_kind_of_damage_changes_the_file_as_described(
    damage: Damage, is_as_it_says: Callable[[bytes, bytes], bool], tmp_path: Path
) -> None:
    before = bytes(range(1, 251)) * 20
    for seed in range(10):
        (tmp_path / "file").write_bytes(before)
        inflict(tmp_path / "file", damage, np.random.default_rng(seed))
        assert is_as_it_says(before, (tmp_path / "file").read_bytes())


def test_a_deleted_file_is_gone_even_if_it_was_empty(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert inflict(tmp_path / "file", Damage.DELETED, np.random.default_rng(0)) == "deleted"
    assert not (tmp_path / "file").exists()
