from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from benchmarks.markdown import measured, origins, p_cells, present
from indexer.origin import Origin


@dataclass(frozen=True)
class One:
    origin: Origin


def test_the_lines_below_a_table_name_each_command_and_each_origin_once(origin: Origin) -> None:
    other = replace(origin, command="python -m benchmarks study vectors x", is_dirty=True)
    assert origins([One(origin), One(other), One(origin)]) == [
        "Run again:",
        "",
        "- `python -m benchmarks run retrieval pets`",
        "- `python -m benchmarks study vectors x`",
        "",
        "Measured: commits 0123456789, 0123456789 with changes on A Processor, 2 cores, 24 GiB.",
    ]
    assert origins([]) == []


def test_commands_that_differ_in_encoders_are_one_where_the_program_takes_several(origin: Origin) -> None:
    ranked, explained = "python -m benchmarks run architectures rfc", "python -m benchmarks run facets csfcube"
    run = [
        *(f"{ranked} --encoder a --encoder b", f"{ranked} --systems words", f"{ranked} --encoder c --encoder a"),
        *(f"{explained} --encoder a", f"{explained} --encoder b"),
    ]
    assert origins([One(replace(origin, command=command)) for command in run])[2:-2] == [
        f"- `{ranked} --encoder a --encoder b --encoder c`",
        f"- `{ranked} --systems words`",
        f"- `{explained} --encoder a`",
        f"- `{explained} --encoder b`",
    ]


def test_commits_stand_with_their_machine(origin: Origin) -> None:
    elsewhere = replace(origin, machine=replace(origin.machine, cores=16, gpu="A GPU"))
    assert measured([One(origin), One(elsewhere)]) == (
        "Measured: commit 0123456789 on A Processor, 2 cores, 24 GiB; commit 0123456789 on A Processor, 16 cores, "
        "24 GiB, A GPU."
    )


@pytest.mark.parametrize(
    ("recorded", "shown"),
    [
        ("python -m benchmarks.memory --short 50", "python -m benchmarks study memory --short 50"),
        ("python -m benchmarks.ann a.lm -k 10", "python -m benchmarks study vectors a.lm -k 10"),
        ("python -m benchmarks study plans a --documents 3", "python -m benchmarks study plan a --documents 3"),
        ("python -m benchmarks.additions a.lm --documents 3", "python -m benchmarks study growth a.lm --add 3"),
    ],
)
def test_a_command_is_shown_by_its_present_name(recorded: str, shown: str) -> None:
    assert present(recorded) == shown


def test_missing_p_values_do_not_count_in_the_adjustment() -> None:
    assert p_cells([0.01, None, 0.02, 0.0001]) == ["0.020", "", "0.020", "< 0.001"]
