from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from benchmarks.store.damage import Damage, Damages, FileKind, Original, choose_file, inflict, make_originals, run_cases
from benchmarks.synthetic import SHORT, documents, vocabulary
from benchmarks.tiny_encoder import save_tiny_bert


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[FileKind, Original]:
    folder = tmp_path_factory.mktemp("damage")
    (folder / "corpus").mkdir()
    for document in documents(SHORT, 30):
        (folder / "corpus" / document.source).write_text(document.text)
    encoder = save_tiny_bert(folder / "encoder", vocabulary(), max_tokens=12)
    return make_originals(folder / "corpus", encoder, folder, seed=0)


def test_damaged_copies_never_answer_wrongly(originals: dict[FileKind, Original], tmp_path: Path) -> None:
    damages = Damages(tmp_path, 0, lambda _: None)
    run_cases(damages, originals, [], 14, 0)
    assert damages.problems == []
    assert damages.by_kind.keys() >= {"reference", "postings of words", "shard"}
    counts = list(damages.by_kind.values())
    assert sum(count["n_cases"] for count in counts) == sum(count["n_refused"] for count in counts) == 14
    assert sum(count["n_crashed"] + count["n_wrong"] for count in counts) == 0


@pytest.mark.parametrize(
    ("damage", "is_as_it_says"),
    [
        (Damage.TRUNCATED, lambda before, after: before.startswith(after) and len(after) < len(before)),
        (Damage.FLIPPED, lambda before, after: _n_bits(before, after) == 1),
        (
            Damage.ZEROED,
            lambda before, after: after == bytes(4096) + before[4096:] or after == before[:4096] + bytes(904),
        ),
        (Damage.EMPTIED, lambda _, after: after == b""),
    ],
    ids=["truncated", "flipped", "zeroed", "emptied"],
)
def test_a_damage_does_what_it_says(
    damage: Damage, is_as_it_says: Callable[[bytes, bytes], bool], tmp_path: Path
) -> None:
    before = bytes(range(1, 251)) * 20
    for seed in range(10):
        (tmp_path / "file").write_bytes(before)
        inflict(tmp_path / "file", damage, np.random.default_rng(seed))
        assert is_as_it_says(before, (tmp_path / "file").read_bytes())


def test_a_deleted_file_is_gone(tmp_path: Path) -> None:
    (tmp_path / "writer.lock").touch()
    file = choose_file(tmp_path, FileKind.LOCK, np.random.default_rng(0))
    assert inflict(file, Damage.DELETED, np.random.default_rng(0)) == "deleted"
    assert not file.exists()


def _n_bits(before: bytes, after: bytes) -> int:
    return sum((a ^ b).bit_count() for a, b in zip(before, after, strict=True))
