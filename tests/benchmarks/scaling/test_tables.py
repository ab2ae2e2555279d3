from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.record_file import write_record
from benchmarks.records import read_records
from benchmarks.report import drawn
from indexer.training.origin import Origin
from tests.benchmarks.scaling.made import scale_record


def test_records_are_read_as_they_were_written(tmp_path: Path, origin: Origin) -> None:
    scale = scale_record(origin, 1_000_000)
    write_record(scale, tmp_path)
    assert read_records(tmp_path) == [scale]


def test_a_name_tells_size_cap_and_whether_it_was_quick(origin: Origin) -> None:
    record = scale_record(origin, 1_000_000)
    assert record.name == "scale-papers-1000000"
    assert replace(record, cap_bytes=6 * 2**30, is_quick=True).name == "scale-papers-1000000-cap6144m-quick"


def test_sizes_stand_in_rising_order_with_a_row_for_each_kind_of_query(origin: Origin) -> None:
    records = [scale_record(origin, n_chunks) for n_chunks in (1_000_000, 400_000)]
    records.append(scale_record(origin, 2_000, is_quick=True))
    lines = drawn("<!-- results:scale -->\n<!-- /results -->", records).splitlines()[3:7]
    assert [line.split(" | ")[2:7:4] for line in lines] == [
        ["400,000", "100 real, 40 chunks"],
        ["400,000", "100 synthetic, 40 chunks"],
        ["1,000,000", "100 real, 40 chunks"],
        ["1,000,000", "100 synthetic, 40 chunks"],
    ]
    assert "| 20.0 / 40.0 | thresholds 1.0, lists 5.1, postings 5.0, scores 3.0, hits 1.5, other 0.5 |" in lines[-1]
    assert "| 0.985 at 10 | 0.5 + 1.5 | 55.5 | 337, 900 | 911 | 15 + 21 |  |" in lines[-1]


def test_what_thresholds_and_words_add_is_said_where_it_was_measured(origin: Origin) -> None:
    plain = scale_record(origin, 1_000_000)
    asked = {kind: replace(one, vectors_p50_ms=7.5) for kind, one in plain.asked.items()}
    words_bytes = sum(plain.disk.values()) // 5
    record = replace(plain, asked=asked, words_bytes=words_bytes, texts="opinions")
    assert record.name == "scale-papers-words-opinions-1000000"
    shown = drawn("<!-- results:scale -->\n<!-- /results -->", [record])
    assert (
        "At 1,000,000 chunks of `papers`, words of made documents drawn from `opinions`, thresholds and words add "
        "12.5 ms (real), 12.5 ms (synthetic) to the median of the same queries without them, and 25.0 % to the size "
        "of the index: term counts, postings and reference."
    ) in shown
    assert "thresholds and words add" not in drawn("<!-- results:scale -->\n<!-- /results -->", [plain])
