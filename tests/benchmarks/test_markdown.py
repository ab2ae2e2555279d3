from __future__ import annotations

from dataclasses import dataclass, replace

from benchmarks.tables.pivot import origins, p_cells
from indexer.origin import Origin


@dataclass(frozen=True)
class One:
    origin: Origin


def test_the_lines_below_a_table_name_each_command_and_each_origin_once(origin: Origin) -> None:
    other = replace(origin, command="python -m benchmarks study encode x", is_dirty=True)
    assert origins([One(origin), One(other), One(origin)]) == [
        "Run again:",
        "",
        "- `python -m benchmarks run retrieval pets`",
        "- `python -m benchmarks study encode x`",
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


def test_a_command_whose_program_is_gone_is_repeated_at_its_commit(origin: Origin) -> None:
    gone = "python -m benchmarks study on_demand rfc"
    assert origins([One(replace(origin, command=gone))])[:3] == [
        "Run again at a commit below, which has the program:",
        "",
        f"- `{gone}`",
    ]


def test_missing_p_values_do_not_count_in_the_adjustment() -> None:
    assert p_cells([0.01, None, 0.02, 0.0001]) == ["0.020", "", "0.020", "< 0.001"]
