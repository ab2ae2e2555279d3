"""What a run says of itself while it goes on."""

from __future__ import annotations

import io

import pytest

import indexer.cli.progress as progress_module
from indexer.build_report import BuildReport
from indexer.cli.planning import describe_outcome, describe_plan
from indexer.cli.progress import BuildProgress
from indexer.plan import Disk, Memory, Plan, Seconds, Vram

PLAN = Plan(
    ways=(),
    n_new=100,
    n_changed=0,
    n_unchanged=0,
    n_unreadable=0,
    n_chars=400_000,
    n_tokens=100_000,
    n_chunks=1_000,
    n_chunks_after=1_000,
    is_counted=False,
    factory="Flat",
    seconds=Seconds(reading=1, encoding=48, storing=1, generation=7),
    memory=Memory(program=300_000_000, weights=45_000_000, index=5_000_000),
    mapped_bytes=1_000_000,
    vram=Vram(weights=45_000_000, batch=155_000_000),
    disk=Disk(catalog=1_000_000, shards=2_000_000, generation=3_000_000, replaced_generation=4_000_000),
    ladder=("> Flat (exact) takes 5.0 MB to build",),
)


@pytest.fixture(autouse=True)
def every_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_module, "_SECONDS_BETWEEN_LINES", 0.0)


def line(report: BuildReport, n_files: int | None = None, plan: Plan | None = None) -> str:
    stream = io.StringIO()
    with BuildProgress(n_files, stream, plan=plan) as progress:
        progress(report)
    return stream.getvalue()


def test_without_a_plan_time_is_told_by_documents() -> None:
    report = BuildReport(n_added=25, n_tokens=50_000, seconds=10)
    assert line(report, 100) == "25 documents of 100, about 30 s left, 50,000 tokens, 5,000 tokens/s\n"
    assert line(report) == "25 documents, 50,000 tokens, 5,000 tokens/s\n"


def test_with_a_plan_time_is_told_by_tokens_at_the_speed_of_this_run() -> None:
    report = BuildReport(n_added=25, n_tokens=20_000, seconds=10)
    assert line(report, plan=PLAN) == "25 documents, about 47 s left, 20,000 tokens, 2,000 tokens/s\n"


def test_before_anything_is_encoded_time_is_that_of_the_plan() -> None:
    assert "about 57 s left" in line(BuildReport(n_unchanged=5, seconds=1), plan=PLAN)


def test_a_run_that_is_longer_than_planned_has_no_negative_time_left() -> None:
    assert "about 7 s left" in line(BuildReport(n_added=1, n_tokens=300_000, seconds=9), plan=PLAN)


def test_a_plan_is_shown_with_all_parts_that_are_not_zero() -> None:
    told = describe_plan(PLAN).splitlines()
    assert told[0].split() == ["new", "about", "100", "documents"]
    assert [one.strip() for one in told[5:10]] == [
        "time         about 57 s, of --encode all as all below",
        "1.0 s  reading and segmenting that the encoder waits for",
        "48 s  encoding",
        "1.0 s  storing",
        "7.0 s  building the FAISS index",
    ]
    assert "GPU memory   about 200.0 MB at most" in told
    assert "disk         about 10.0 MB at most, 6.0 MB afterwards" in told
    assert any(one.endswith("4.0 MB  the old FAISS index, until it is replaced") for one in told)


def test_the_outcome_stands_beside_the_plan() -> None:
    report = BuildReport(seconds=60, generation_seconds=6, peak_memory_bytes=360_000_000, disk_bytes=6_100_000)
    assert describe_outcome(PLAN, report).splitlines() == [
        "time              57 s planned      1 min 6 s taken",
        "memory        350.0 MB planned       360.0 MB taken",
        "disk            6.0 MB planned         6.1 MB taken",
    ]
