from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from benchmarks.encoding.record import ThroughputRecord
from benchmarks.encoding.tables import Spread, limit_shares, limit_table, overheads, ratios, throughput_table
from benchmarks.encoding.ways import WAYS
from benchmarks.record_file import rebuild


def test_ways_stand_beside_the_defaults_with_their_ratios_by_round(record: ThroughputRecord) -> None:
    lines = throughput_table([record]).splitlines()
    assert lines[2:5] == [
        "| pets (10, 400) | longmatch, documents to index | bfloat16 | 5.00 | 200.0 | 20,000 | 5.00 [4.00, 6.00] "
        "| 2.00 | 402 |",
        "| pets (10, 400) | longmatch, documents to index with its FAISS index | bfloat16 | 4.00 | 160.0 | 16,000 "
        "| 4.00 [3.20, 4.80] |  | 402 |",
        "| pets (10, 400) | longmatch, encoder alone | bfloat16 | 5.41 | 216.2 | 21,622 | 5.44 [4.21, 6.67] "
        "| 2.00 | 402 |",
    ]
    assert lines[5].endswith("| float32 | 1.00 | 40.0 | 4,000 | 1.00 [1.00, 1.00] | 2.00 | 412 |")
    assert "- pets: bert@01, 2 threads, 2 rounds, 40,000 tokens." in lines


def test_ratios_are_of_the_same_round(record: ThroughputRecord) -> None:
    assert ratios(record, [4.0, 2.0]) == Spread(4.0, 2.0, 6.0)


def test_shares_are_of_the_quickest_product_in_the_precision_of_the_weights(record: ThroughputRecord) -> None:
    assert limit_shares(record, record.ways["longmatch"]) == Spread(0.5625, 0.5, 0.625)
    defaults = limit_shares(record, record.ways["st-float32"])
    assert (defaults.lowest, defaults.highest) == pytest.approx((1000 / 8 / 400, 1000 / 12 / 250))
    line = limit_table([record]).splitlines()[2]
    assert line.endswith("| bfloat16 | 25.00 | 500 | 900 | 56.2 % [50.0, 62.5] |")


def test_the_account_tells_where_the_time_goes_and_how_true_vectors_are(record: ThroughputRecord) -> None:
    waited = overheads(record)["waited"]
    assert (waited.middle, waited.lowest, waited.highest) == pytest.approx((0.035, 0.02, 0.05))
    lines = limit_table([record]).splitlines()
    assert lines[10].endswith("one thread, a pass of its own): linear layers 75.0 %, attention 25.0 %.")
    assert "3.5 % [2.0, 5.0] of the time, while the encoder was not at work" in lines[11]
    assert "takes, 7.5 % [5.0, 10.0] of the time and 7.5 % [5.0, 10.0] of the processor time." in lines[11]
    assert "cosine of 2,000 stored chunk vectors to the model in float32: mean 0.99995, lowest 0.99980;" in lines[12]


def test_a_quick_run_says_so(record: ThroughputRecord) -> None:
    assert "2 rounds, 40,000 tokens; a quick run" in throughput_table([replace(record, is_quick=True)])


def test_the_record_survives_json_and_knows_all_ways(record: ThroughputRecord) -> None:
    assert rebuild(ThroughputRecord, json.loads(json.dumps(asdict(record)))) == record
    assert record.ways.keys() == WAYS.keys()
    assert (record.name, record.extent) == ("throughput-pets-bert-threads2", {"chunks": 400, "rounds": 2})
    assert replace(record, is_quick=True).name == "throughput-pets-bert-threads2-quick"


def test_a_run_on_a_gpu_names_it_and_has_no_operators(record: ThroughputRecord) -> None:
    on_gpu = replace(record, device="cuda:0", operator_seconds={})
    assert on_gpu.name == "throughput-pets-bert-cuda0-threads2"
    assert f"{record.encoder}, cuda:0, {record.threads} threads" in throughput_table([on_gpu])
    assert "by operators" not in limit_table([on_gpu]) and "by operators" in limit_table([record])
