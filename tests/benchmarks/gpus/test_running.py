from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.gpus.record import GpuRecord, Peak
from benchmarks.gpus.running import run_stages
from engine.errors import EngineError
from engine.origin import Machine, Origin

ORIGIN = Origin("python -m benchmarks.gpu", "", False, 0, Machine("cpu", 1, 1, ""), {})
BEGUN = GpuRecord("cpu", "", 0, "e@1", True, None, [], [], None, {}, {}, ORIGIN)


def told(record: GpuRecord, name: str) -> GpuRecord:
    return replace(record, peak=Peak(len(name), 1.0, 2.0, 3.0))


def fail(_: GpuRecord) -> GpuRecord:
    raise EngineError("no\n  such thing")


def test_a_stage_that_fails_costs_no_other() -> None:
    record = run_stages(BEGUN, {"one": lambda record: told(record, "one"), "two": fail}, 60, None)
    assert record.peak == Peak(3, 1.0, 2.0, 3.0)
    assert record.failed == {"two": "no such thing"}
    assert list(record.stage_seconds) == ["one", "two"]


def test_what_was_measured_is_written_before_the_next_stage_begins(tmp_path: Path) -> None:
    def look(record: GpuRecord) -> GpuRecord:
        (file,) = tmp_path.iterdir()
        assert file.name == "gpu-cpu-quick.unfinished"
        return replace(record, encoder=str(json.loads(file.read_text())["peak"]["size"]))

    record = run_stages(BEGUN, {"one": lambda record: told(record, "one"), "look": look}, 60, tmp_path)
    assert (record.encoder, record.failed) == ("3", {})


def test_a_stage_is_stopped_when_the_time_is_up_and_none_is_begun_after_it() -> None:
    def wait(_: GpuRecord) -> GpuRecord:
        while True:
            time.sleep(0.01)

    record = run_stages(BEGUN, {"wait": wait, "late": lambda record: told(record, "late")}, 0.05, None)
    assert record.failed == dict.fromkeys(["wait", "late"], "the time of --limit-seconds was up")
    assert record.peak is None
