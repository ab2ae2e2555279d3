"""Parts of the tables that the pages do not show; tests/benchmarks/test_committed_pages.py compares the others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.speed.records import AnnRecord
from benchmarks.speed.vectors.tables import ann_table, chosen_point, front, save_pareto
from tests.benchmarks.kept_records import kept_record


@pytest.fixture(scope="module")
def record() -> AnnRecord:
    return kept_record(AnnRecord)


def test_the_quickest_setting_that_reaches_a_recall_is_shown(record: AnnRecord) -> None:
    for build in record.builds:
        found = [(point, point.document) for point in build.points if point.document]
        reaching = [both for both in found if both[1].recall >= 0.95]
        by_hand = min(reaching, key=lambda both: both[1].latency.p50_ms) if reaching else None
        assert chosen_point(build, 0.95) == (by_hand or max(found, key=lambda both: both[1].recall))


def test_nothing_beats_what_is_on_the_front(record: AnnRecord) -> None:
    found = {
        (build.name, point.setting): (point.document.latency.p50_ms, -point.document.recall)
        for build in record.builds
        for point in build.points
        if point.document
    }
    best = {key for key, own in found.items() if not any(a[0] <= own[0] and a[1] < own[1] for a in found.values())}
    assert front(record) <= best


def test_failed_types_and_types_of_another_commit_are_named(record: AnnRecord) -> None:
    older = replace(record.builds[0], commit="fedcba9876543210")
    table = ann_table([replace(record, builds=[older], failed={"faiss Flat": "no memory"})])
    assert f"{older.name} at commit fedcba9876. No result: faiss Flat." in table


@pytest.mark.slow
def test_plots_are_written_twice_each_and_are_the_same_again(record: AnnRecord, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    paths = save_pareto(record, tmp_path / "one")
    names = [f"{record.name}-{view}.{suffix}" for view in ("chunk", "document") for suffix in ("png", "svg")]
    assert [path.name for path in paths] == names
    for path, again in zip(paths, save_pareto(record, tmp_path / "two"), strict=True):
        assert path.read_bytes() == again.read_bytes()
