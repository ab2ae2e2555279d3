"""The pages as they are committed, compared with the committed runs: every table and number on them."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from benchmarks.report import drawn, main
from benchmarks.runs import CHECKOUT, read_run, run_files


def test_every_table_of_the_readme_is_that_of_its_runs() -> None:
    readme = (CHECKOUT / "README.md").read_text("utf-8")
    runs = [read_run(path) for path in run_files() if path.parent.name in ("retrieval", "board")]
    assert drawn(readme, runs) == readme


@pytest.mark.slow
def test_every_table_is_that_of_its_runs() -> None:
    done = CliRunner().invoke(main, ["--check"])
    assert (done.exit_code, done.output) == (0, "")
