"""The pages as they are committed, compared with the committed runs: every table and number on them."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from benchmarks.report import main


@pytest.mark.slow
def test_every_table_is_that_of_its_runs() -> None:
    done = CliRunner().invoke(main, ["--check"])
    assert (done.exit_code, done.output) == (0, "")
