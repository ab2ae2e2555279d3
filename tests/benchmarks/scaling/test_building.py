from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks.scaling.building import Real, publish
from engine.errors import BudgetExceeded
from engine.store.ann import AUTO
from engine.store.snapshot import Snapshot


@pytest.fixture
def folder(real_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(real_folder, tmp_path / "grown.lm"))


def test_a_generation_is_published_once(folder: Path) -> None:
    assert publish(folder, AUTO, 8 << 30, 0.95)["is_new"]
    with Snapshot(folder) as snapshot:
        row = snapshot.generation_row
        assert row is not None and (row.factory, row.n_vectors) == ("Flat", snapshot.n_chunks)
        assert snapshot.reference_row is not None
    assert not publish(folder, AUTO, None, 0.95)["is_new"]
    assert publish(folder, "SQ8", None, 0.0)["is_new"]


def test_the_budget_is_that_of_the_whole_process(folder: Path) -> None:
    with pytest.raises(BudgetExceeded, match=r"--memory leaves 0\.0 MB"):
        publish(folder, "Flat", 1 << 20, 0.95)


def test_a_part_of_the_real_documents_is_the_same_again(real_folder: Path) -> None:
    with Snapshot(real_folder) as snapshot:
        names = Real(real_folder, 9, 0).source(snapshot).names
        assert names == Real(real_folder, 9, 0).source(snapshot).names != Real(real_folder, 9, 1).source(snapshot).names
        assert (len(names), len(Real(real_folder, None, 0).source(snapshot))) == (9, 240)
