from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from benchmarks.measuring.latency import Percentiles
from benchmarks.record_file import rebuild
from benchmarks.vectors.pictures import save_pareto
from benchmarks.vectors.record import AnnBuild, AnnPoint, AnnRecord, Found
from benchmarks.vectors.table import ann_table, chosen_point, front
from indexer.training.origin import Origin


def point(setting: str, recall: float, document_recall: float | None, ms: float, deepest: int = 256) -> AnnPoint:
    document = document_recall and Found(document_recall, Percentiles(ms, 2 * ms, 3 * ms))
    return AnnPoint(setting, Found(recall, Percentiles(ms / 10, ms, ms)), document or None, deepest)


@pytest.fixture
def record(origin: Origin) -> AnnRecord:
    points = [point("nprobe=1", 0.6, 0.7, 1.0), point("nprobe=2", 0.9, 0.96, 2.0), point("nprobe=4", 0.95, 0.99, 4.0)]
    ours = AnnBuild("longmatch", "1.15.1", "IVF4,PQ8x4fs", True, 2.0, 182.4, 768, 30.0, 4.0, points)
    narrow = [point("ef=16", 0.8, None, 0.3, 0), point("ef=256", 0.8, 0.9, 3.0, 1024)]
    graph = AnnBuild("hnswlib", "0.8.0", "M16,efC200", False, 9.0, 1684.0, 0, 60.0, 1700.0, narrow)
    sizes = (1000, 25, 384, 5, 200, 40, 256, 10, 1, 2)
    return AnnRecord("papers", "papers@ab", "mean@0f", False, *sizes, [ours, graph], origin)


def test_a_type_stands_there_with_its_quickest_setting_that_is_good_enough(record: AnnRecord) -> None:
    ours, graph = record.builds
    settings = [found[0].setting for build in (ours, graph) if (found := chosen_point(build, 0.95))]
    assert settings == ["nprobe=2", "ef=256"]  # no setting of the graph is good enough
    lines = ann_table([record]).splitlines()
    assert lines[2] == (
        "| papers (1,000) | longmatch IVF4,PQ8x4fs (1.15.1) | nprobe=2, 256 | 0.900 | 0.960 | yes | 0.20 / 2.00 "
        "| 2.00 / 4.00 | 4.00 | 4.00 | 2.0 | 182 + 768 | 30 | 4 |"
    )
    assert lines[3].startswith("| papers (1,000) | hnswlib M16,efC200 (0.8.0) | ef=256, 1,024 | 0.800 | 0.900 |  | ")
    assert lines[3].endswith(" |  |  | 9.0 | 1684 | 60 | 1700 |")


def test_a_type_that_was_asked_with_no_document_has_no_row(record: AnnRecord) -> None:
    graph = replace(record.builds[1], points=record.builds[1].points[:1])
    assert chosen_point(graph, 0.95) is None
    assert "hnswlib" not in ann_table([replace(record, builds=[record.builds[0], graph])])


def test_the_front_is_what_nothing_beats(record: AnnRecord) -> None:
    ours = "longmatch IVF4,PQ8x4fs"
    assert front(record) == {(ours, "nprobe=1"), (ours, "nprobe=2"), (ours, "nprobe=4")}


def test_what_failed_and_what_another_commit_measured_is_told(record: AnnRecord) -> None:
    older = replace(record.builds[0], commit="fedcba9876543210")
    table = ann_table([replace(record, builds=[older], failed={"faiss Flat": "no memory"})])
    assert "longmatch IVF4,PQ8x4fs at commit fedcba9876. No result: faiss Flat." in table


def test_plots_are_written_twice_each_and_are_the_same_again(record: AnnRecord, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    paths = save_pareto(record, tmp_path / "one")
    views = ("chunk", "document")
    assert [path.name for path in paths] == [
        f"{record.name}-{view}.{suffix}" for view in views for suffix in ("png", "svg")
    ]
    for path, again in zip(paths, save_pareto(record, tmp_path / "two"), strict=True):
        assert path.read_bytes() == again.read_bytes()


def test_the_record_survives_json_and_its_name_tells_what_was_given(record: AnnRecord) -> None:
    assert rebuild(AnnRecord, json.loads(json.dumps(asdict(record)))) == record
    assert record.name == "ann-papers-mean-1000x384-k10-threads1"
    other = replace(record, encoder="", is_quick=True, threads=2, origin=replace(record.origin, seed=3))
    assert other.name == "ann-papers-1000x384-k10-threads2-quick-seed3"
    assert record.extent == {"types": 2, "query documents": 5}
