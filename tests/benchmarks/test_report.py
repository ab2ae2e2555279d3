"""Runs on disk, the pages that are drawn from them, and the committed pages compared with the committed runs."""

import gzip
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import click
import pytest
from click.testing import CliRunner

from benchmarks.__main__ import STUDIES, TASKS
from benchmarks.metrics import evaluate
from benchmarks.report import ReportError, drawn, is_partial, main, not_shown, pictures_of
from benchmarks.runs import (
    CHECKOUT,
    KEPT,
    Case,
    Run,
    RunError,
    ranked_case,
    read_header,
    read_run,
    run_files,
    same_cases,
    write_run,
)
from benchmarks.tables.pictures import PICTURES, THEMES, Picture, drawn_picture, panels
from benchmarks.tables.pivot import can_repeat
from engine.machine import Origin
from tests.benchmarks.made_runs import error_of, made_run, run_program


@dataclass(frozen=True)
class Part:
    weight: float


@dataclass(frozen=True)
class Whole:
    label: str
    parts: list[Part]
    by_name: dict[str, Part]
    maybe: Part | None
    later: int = 7  # runs that are older than this field have none


QRELS = {"cat": {"kitten": 2, "dog": 1, "rocket": 0}, "dog": {"cat": 1}}


@pytest.fixture
def ranked(origin: Origin) -> Run:
    rankings = {"cat": [("dog", 0.75), ("kitten", 1 / 3)], "dog": [("kitten", 0.5)]}
    cases = [ranked_case(query_id, rankings[query_id], QRELS[query_id]) for query_id in QRELS]
    return replace(made_run("evidence", [], origin, encoder="mean@0f", k=100), cases=cases)


def test_a_run_is_read_as_it_was_written(ranked: Run, tmp_path: Path) -> None:
    path = write_run(ranked, tmp_path)
    assert path == tmp_path / "runs/retrieval/pets-evidence-mean-test.jsonl.gz"
    assert read_run(path) == ranked and list(run_files(tmp_path)) == [path]
    assert read_header(path)["origin"]["commit"] == ranked.origin.commit
    assert write_run(ranked, tmp_path / "again").read_bytes() == path.read_bytes()


def test_measures_of_a_ranking_are_computed_from_it(ranked: Run) -> None:
    expected = evaluate(QRELS, {"cat": ["dog", "kitten"], "dog": ["kitten"]})
    assert {name: ranked.values(name) for name in ranked.measures} == {
        name: list(values.values()) for name, values in expected.items()
    }
    assert ranked.mean("Recall@10") == 0.5
    assert ranked.cases[0].ranking == [("dog", 0.75), ("kitten", 0.333333)]
    assert ranked.cases[0].relevant == {"kitten": 2, "dog": 1}


def test_targets_behind_the_kept_ranks_count_for_deep_recall(origin: Origin) -> None:
    ranking = [(f"d{rank}", -float(rank)) for rank in range(1, 500)]
    case = ranked_case("q", ranking, {"d3": 1, "d400": 1, "absent": 1})
    assert (len(case.ranking), case.beyond) == (KEPT, {"d400": 400})
    run = Run(task="retrieval", dataset="pets@0", system="a", k=1000, origin=origin, cases=[case])
    assert (run.mean("Recall@100"), run.mean("Recall@1000")) == (0.3333, 0.6667)


def test_the_name_of_a_run_holds_its_variant_split_and_seed(ranked: Run, origin: Origin) -> None:
    assert replace(ranked, variant="lead", split="valid").name == "pets-evidence-mean-lead-valid"
    assert replace(ranked, origin=replace(origin, seed=3)).name == "pets-evidence-mean-test-seed3"


def test_a_run_of_fewer_cases_does_not_replace_a_larger_one(origin: Origin, tmp_path: Path) -> None:
    write_run(made_run("bm25", [0.5, 0.25], origin), tmp_path)
    with pytest.raises(RunError, match=r"holds 2 cases, not 1; write the smaller run elsewhere: --out FOLDER"):
        write_run(made_run("bm25", [0.5], origin), tmp_path)
    write_run(made_run("bm25", [0.75, 0.75], origin), tmp_path)


def test_runs_are_compared_on_the_same_cases_of_the_same_data(origin: Origin) -> None:
    one, other = made_run("bm25", [0.5], origin), made_run("tfidf", [0.25], origin)
    assert same_cases(one, [other, replace(other, dataset="pets@1"), made_run("wmd", [1, 1], origin)]) == [other]


def test_details_are_rebuilt_as_the_dataclass_of_a_task(ranked: Run) -> None:
    details = {"label": "a", "parts": [{"weight": 2}], "by_name": {"x": {"weight": 3}}, "maybe": {"weight": 4}}
    part, parts, by_name = Part(4), [Part(2)], {"x": Part(3)}
    assert replace(ranked, details=details).details_as(Whole) == Whole("a", parts, by_name, part)
    assert replace(ranked, details={**details, "maybe": None, "later": 8}).details_as(Whole).later == 8


@pytest.mark.parametrize("text", ["", "{}\n", "no JSON\n"])
def test_the_error_for_a_file_that_is_not_a_run_names_the_file(text: str, tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl.gz"
    path.write_bytes(gzip.compress(text.encode()))
    with pytest.raises(RunError, match=r"notes.jsonl.gz is no run .*; keep nothing else in the folder of runs"):
        read_run(path)


README = "# Title\n<!-- results:retrieval -->\nold\n<!-- /results -->\nEnd\n"
ROWS = """
| proposals (5) | evidence, mean |  | 0.750 [0.750, 0.750] | 0.750 | 0.750 | 0.750 | 0.062 | 0.125 |
| proposals (5) | document, mean |  | 0.500 [0.500, 0.500] | 0.500 | 0.500 | 0.500 |  | 0.125 |
| proposals (5) | bm25 |  | 0.250 [0.250, 0.250] | 0.250 | 0.250 | 0.250 |  |  |
"""


@pytest.fixture
def records(origin: Origin) -> list[Run]:
    systems = [("bm25", "", 0.25), ("document", "mean@0f", 0.5), ("evidence", "mean@0f", 0.75)]
    return [made_run(system, [value] * 5, origin, "proposals", encoder=encoder) for system, encoder, value in systems]


def test_a_table_is_drawn_from_its_records(records: list[Run]) -> None:
    page = drawn(README, records)
    assert page.startswith("# Title\n<!-- results:retrieval -->\n| Task (queries) |") and ROWS in page
    assert page.endswith("2 cores, 24 GiB.\n<!-- /results -->\nEnd\n") and "old" not in page
    assert drawn(page, records) == page


def test_records_of_other_queries_are_not_compared(records: list[Run]) -> None:
    records[0] = replace(records[0], dataset="proposals@1")
    assert "| 0.750 | 0.062 |  |\n" in drawn(README, records)


@pytest.mark.parametrize("changed", [{"split": "valid"}, {"dataset": "proposals_quick@0"}])
def test_splits_for_tuning_and_quick_parts_are_not_shown(records: list[Run], changed: dict[str, Any]) -> None:
    assert "No runs yet." in drawn(README, [replace(each, **changed) for each in records])
    assert is_partial(replace(records[0], **changed)) and not is_partial(records[0])


@pytest.fixture
def search(origin: Origin) -> Run:
    case = Case(id="pets, CPU, lists", labels={"lists": "IVF2,Flat"}, values={"documents": 4000, "recall": 0.9})
    return Run(task="search", dataset="pets", system="search", details={"note": "Why."}, origin=origin, cases=[case])


def test_a_study_has_a_row_for_each_case(search: Run) -> None:
    lines = drawn("<!-- results:search -->\n<!-- /results -->", [search]).splitlines()
    assert lines[1] == "| Search | lists | documents | recall |"
    assert lines[3:6] == ["| pets, CPU, lists | IVF2,Flat | 4,000 | 0.9 |", "", "Why."]


def test_a_table_that_is_not_known_is_refused() -> None:
    with pytest.raises(ReportError, match="there is no table 'speed'; name one of headline, findings"):
        drawn("<!-- results:speed -->\n<!-- /results -->", [])
    with pytest.raises(ReportError, match="there is no table to draw; add <!-- results:retrieval -->"):
        drawn("# Title\n", [])


def test_check_fails_until_the_readme_is_drawn(tmp_path: Path, records: list[Run]) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(README)
    for each in records:
        write_run(each, tmp_path / "results")
    options = ["--page", readme, "--results", tmp_path / "results"]
    assert error_of(main, *options, "--check") == (
        "Error: these files differ from what the runs give: README.md; draw them: python -m benchmarks report"
    )
    run_program(main, *options)
    run_program(main, *options, "--check")
    assert readme.read_text() == drawn(README, records)


def test_check_fails_for_a_task_that_no_table_shows(tmp_path: Path, records: list[Run], search: Run) -> None:
    (tmp_path / "README.md").write_text(drawn(README, records))
    for each in [*records, search]:
        write_run(each, tmp_path / "results")
    options = ["--page", tmp_path / "README.md", "--results", tmp_path / "results"]
    assert error_of(main, *options, "--check") == (
        "Error: there are runs that no table of README.md shows; add <!-- results:search -->, each with "
        "<!-- /results --> below it"
    )
    assert not_shown([README], [*records, search]) == ["search"]
    assert not_shown([README], records) == []


TABLE = """
| System | pets (2) | cars (2) | p |
| --- | --- | --- | --- |
| words | 0.500 [0.400, 0.600] | 0.300 [0.200, 0.400] ± 0.01 | 0.1 |
| a < b | 0.250 [0.200, 0.300] | - |  |

| Other | pets (2) |
| --- | --- |
| words | 0.1 [0.0, 0.2] |
"""
PICTURE = Picture("retrieval", ("System",), title="nDCG")


def test_a_picture_has_the_intervals_of_a_table_and_of_no_other() -> None:
    assert panels(PICTURE, TABLE) == {
        "pets (2)": {"words": (0.5, 0.4, 0.6), "a < b": (0.25, 0.2, 0.3)},
        "cars (2)": {"words": (0.3, 0.2, 0.4)},
    }
    by_system = Picture("retrieval", ("p",), "pets (2)", ("System",))
    assert panels(by_system, TABLE) == {"words": {"0.1": (0.5, 0.4, 0.6)}, "a < b": {"": (0.25, 0.2, 0.3)}}
    with pytest.raises(ValueError, match="'words' is twice in a panel of retrieval"):
        panels(PICTURE, TABLE + TABLE)
    assert drawn_picture(PICTURE, "no table", "light") == ""


def test_dots_and_intervals_stand_at_their_values_in_both_themes() -> None:
    light, dark = (drawn_picture(PICTURE, TABLE, theme) for theme in THEMES)
    shapes = [re.sub(r'(fill|stroke)="#\w+"', "", picture) for picture in (light, dark)]
    assert shapes[0] == shapes[1] and light != dark
    root = ElementTree.fromstring(light)
    words = {text.text: text for text in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"words", "a < b", "pets (2)", "cars (2)", "nDCG", "0.2", "0.6"} <= words.keys()
    first = next(iter(root.iter("{http://www.w3.org/2000/svg}circle")))
    line = next(one for one in root.iter("{http://www.w3.org/2000/svg}line") if one.get("stroke-width") == "2")
    place = {name: float(line.attrib[name]) for name in ("x1", "x2")}
    assert float(first.attrib["cx"]) == pytest.approx((place["x1"] + place["x2"]) / 2, abs=0.1)
    assert (first.get("fill"), line.get("stroke")) == (THEMES["light"][3],) * 2


def test_check_fails_until_the_pictures_of_a_page_are_drawn(tmp_path: Path, origin: Origin) -> None:
    page = tmp_path / "page.md"
    page.write_text('<source srcset="pictures/retrieval-dark.svg">\n<!-- results:retrieval -->\n<!-- /results -->\n')
    write_run(made_run("bm25", [0.25, 0.75], origin, "proposals"), tmp_path / "results")
    options = ["--page", page, "--results", tmp_path / "results"]
    run_program(main, *options)
    run_program(main, *options, "--check")
    picture = tmp_path / "pictures" / "retrieval-light.svg"
    picture.write_text(picture.read_text().replace("bm25", "bm24"))
    stale = "these files differ from what the runs give: retrieval-light.svg"
    assert stale in error_of(main, *options, "--check")
    with pytest.raises(ReportError, match="there is no picture 'cats'; name one of retrieval, peers"):
        pictures_of(page, 'srcset="pictures/cats-dark.svg"', [])
    assert all(len(one.labels) for one in PICTURES.values())


@pytest.fixture(scope="module")
def read_once() -> Iterator[Callable[[Path], Run]]:
    """`read_run`, which reads each run once for all tests, so that it is judged once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("benchmarks.runs.read_run", cached := cache(read_run))
        yield cached


def test_every_table_of_the_readme_is_that_of_its_runs(read_once: Callable[[Path], Run]) -> None:
    readme = (CHECKOUT / "README.md").read_text("utf-8")
    runs = [read_once(path) for path in run_files() if path.parent.name in ("retrieval", "board")]
    assert drawn(readme, runs) == readme


@pytest.mark.slow
@pytest.mark.usefixtures("read_once")
def test_every_table_is_that_of_its_runs() -> None:
    done = CliRunner().invoke(main, ["--check"])
    assert (done.exit_code, done.output) == (0, "")


def test_every_command_that_is_said_to_repeat_a_run_is_one_of_today() -> None:
    for command in {read_header(path)["origin"]["command"] for path in run_files()}:
        if can_repeat(command):
            _, _, _, verb, name, *words = shlex.split(command)
            program = {"run": TASKS, "study": STUDIES}[verb].get_command(click.Context(main), name)
            assert program is not None
            program.make_context(name, words)
