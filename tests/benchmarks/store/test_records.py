"""Lines of the README that show broken promises."""

from __future__ import annotations

import json
from dataclasses import replace

from benchmarks.faults.records import DamagedCounts, FaultsRecord, InterruptionCounts
from benchmarks.record_file import KIND, RESULTS, rebuild
from benchmarks.store.records import ExactnessRecord

VALUES = json.loads((RESULTS / "exactness-proposals-Flat.json").read_text("utf-8"))
EXACT = rebuild(ExactnessRecord, {name: value for name, value in VALUES.items() if name != KIND})


def test_a_ranking_that_differs_is_shown() -> None:
    (line,) = replace(EXACT, n_certified=500, n_ranked_otherwise=2).promises
    assert "500 certified rankings, 2 of them different from that of a double loop" in line


def test_a_silently_different_answer_is_shown() -> None:
    counts = DamagedCounts(*range(100, 111))
    record = FaultsRecord({}, {}, {"words": counts}, {"shard": counts}, ["x"], 1.0, EXACT.origin)
    assert record.promises == [
        "- 100 damaged copies of 1 indexes, sealed and unsealed: 104 silently different answers, 6 other problems.",
        "  - shard: 100 cases, 103 refused, 203 answered correctly, 105 found by `verify`; of 106 repairs "
        "107 restored all, 108 reported lost documents, 109 refused.",
    ]


def test_a_broken_interruption_is_shown() -> None:
    record = FaultsRecord({"kill": InterruptionCounts(9, 1, 2, 3, 4)}, {"remove": 9}, {}, {}, ["x"], 1.0, EXACT.origin)
    assert record.promises[0].startswith("- 9 interruptions of 1 operations: 4 that lost or changed data, left")
    assert record.promises[1:] == ["  - kill: 9 cases, 4 problems."]
