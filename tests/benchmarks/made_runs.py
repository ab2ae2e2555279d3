"""Runs that tables are drawn from, without a system, and programs that write runs."""

from collections.abc import Sequence
from typing import Any

import click
from click.testing import CliRunner, Result

from benchmarks.metrics import METRICS
from benchmarks.runs import Case, Run
from engine.machine import Origin


def made_run(system: str, values: Sequence[float], origin: Origin, corpus: str = "pets", **given: Any) -> Run:  # noqa: ANN401
    """A run of retrieval whose every measure has these values, for queries a, b, c and so on."""
    cases = [
        Case(id=chr(ord("a") + number), values=dict.fromkeys(METRICS, value)) for number, value in enumerate(values)
    ]
    fields = {"task": "retrieval", "dataset": f"{corpus}@0", "system": system, "origin": origin} | given
    return Run(**fields, cases=cases)


def run_program(program: click.Command, *words: object) -> Result:
    """Run a program that must succeed."""
    done = CliRunner().invoke(program, list(map(str, words)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done


def error_of(program: click.Command, *words: object) -> str:
    """Run a program that must fail; return the last line of its errors."""
    done = CliRunner().invoke(program, list(map(str, words)), catch_exceptions=False)
    assert done.exit_code != 0, done.output
    return done.stderr.splitlines()[-1]
