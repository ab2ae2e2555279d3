"""Runs lines of Python as a person would: in a process of its own, with the packages of one checkout."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from pathlib import Path

from benchmarks.newcomers.record import Outcome
from benchmarks.newcomers.tries import Try

_SECONDS = 600  # by the clock
_OWN = re.compile(r"^(?:engine|benchmarks)\.[\w.]+: ", re.MULTILINE)  # an error of this program, as a traceback ends
# An editable installation of this checkout must not lend its packages to another one.
_ALONE = """\
import sys
sys.path[:] = [place for place in sys.path if place != {own!r}]
sys.meta_path[:] = [one for one in sys.meta_path if not getattr(one, "__module__", "").startswith("__editable__")]
sys.path.insert(0, {checkout!r})
exec(compile({code!r}, "<typed>", "exec"))
"""
_CHECKOUT = Path(__file__).resolve().parents[2]
ANSWER, CLEAR, TRACEBACK, WRONG = "answer", "clear error", "traceback", "wrong answer"


def run_code(code: str, checkout: Path, folder: Path) -> tuple[subprocess.CompletedProcess[str], float]:
    """Run code with the packages of a checkout; returns what came, and seconds of processor time."""
    before = _children()
    done = subprocess.run(
        [sys.executable, "-P", "-c", _ALONE.format(own=str(_CHECKOUT), checkout=str(checkout), code=code)],
        cwd=folder,
        env=os.environ | {"HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS,
    )
    return done, _children() - before


def attempt(one: Try, code: str, checkout: Path, folder: Path) -> Outcome:
    """Run one form of a try, and judge what came of it."""
    done, seconds = run_code(code, checkout, folder)
    return Outcome(judge(done, one.expected), round(seconds, 1), one.lines(code), last_line(done, checkout))


def judge(done: subprocess.CompletedProcess[str], expected: str) -> str:
    """What a person saw: the answer, an error of this program, another traceback, or something else."""
    if done.returncode == 0:
        return ANSWER if expected in done.stdout else WRONG
    return CLEAR if _OWN.search(done.stderr) or "Traceback" not in done.stderr else TRACEBACK


def last_line(done: subprocess.CompletedProcess[str], checkout: Path) -> str:
    """The line that a person reads first: the last one of the errors, or of the output; paths begin at the checkout."""
    text = done.stdout if done.returncode == 0 else done.stderr
    return next(iter(text.replace(f"{checkout}/", "").strip().splitlines()[-1:]), "")[:200]


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
