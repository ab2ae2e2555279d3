from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from benchmarks.freshness import MEASURED, ROOT, TASKS, Age, FreshnessError, History, modules_of, stale_note
from benchmarks.records import Record
from benchmarks.runs import Run
from benchmarks.store.records import ExactnessRecord
from indexer.origin import Origin
from tests.benchmarks.made_runs import made_run

SCORING = "engine/scoring/evidence.py"


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit(folder: Path, file: str, text: str) -> str:
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "Change")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    return tmp_path


@pytest.fixture
def exact(origin: Origin) -> Callable[[str], ExactnessRecord]:
    return lambda made_at: ExactnessRecord(
        "pets", "Flat", 4, 10, 4, 9, 1e-8, 4, 0, 1e-8, 1.0, replace(origin, commit=made_at)
    )


def test_every_kind_declares_code_that_exists() -> None:
    assert set(MEASURED) == {kind.kind for kind in get_args(Record) if kind is not Run} | set(TASKS)
    assert [path for paths in MEASURED.values() for path in paths if not (ROOT / path).exists()] == []


# Modules of the search that decide no score, rank or candidate of an ordinary query.
SCORE_NOTHING = {
    *("__init__", "allowance", "diversity", "novelty", "on_demand", "pair_search", "partition", "request"),
    "section_names",
}


def test_every_module_of_the_search_is_declared_or_scores_nothing() -> None:
    declared = {Path(path).stem for path in MEASURED["exactness"] if path.startswith("engine/search/")}
    present = {path.stem for path in (ROOT / "engine" / "search").glob("*.py")}
    assert declared | SCORE_NOTHING == present
    assert not declared & SCORE_NOTHING


def test_a_system_that_is_not_ours_does_not_measure_our_scores(origin: Origin) -> None:
    ours = made_run("words", [1.0], origin)
    assert "engine/scoring" in modules_of(ours)
    assert modules_of(replace(ours, system="bm25"))[-1] == "benchmarks/baselines"
    assert modules_of(replace(ours, system="tfidf"))[-1] == "benchmarks/baselines"


def test_a_record_is_stale_once_its_code_changes(checkout: Path, exact: Callable[[str], ExactnessRecord]) -> None:
    first = commit(checkout, SCORING, "POWER = 2\n")
    commit(checkout, "engine/readers/html.py", "DEPTH = 1\n")
    assert History(checkout).age(exact(first)) == Age("exactness-pets-Flat", first[:10], True, ())
    (checkout / SCORING).write_text("POWER = 3\n")  # without a commit
    assert History(checkout).age(exact(first)).changed == ("engine/scoring",)


def test_docstrings_comments_and_layout_leave_a_record_fresh(
    checkout: Path, exact: Callable[[str], ExactnessRecord]
) -> None:
    first = commit(checkout, SCORING, '"""Old."""\n\ndef score(a):\n    """Old."""\n    return a\n')
    commit(checkout, SCORING, '"""New."""\n\n\ndef score(a):\n    # The same.\n    return (a)\n')
    assert not History(checkout).age(exact(first)).is_stale


def test_a_file_that_is_moved_away_or_added_is_a_change(
    checkout: Path, exact: Callable[[str], ExactnessRecord]
) -> None:
    first = commit(checkout, "engine/words/counts.py", "A = 1\n")
    commit(checkout, SCORING, "B = 1\n")
    assert History(checkout).age(exact(first)).changed == ("engine/scoring",)
    (checkout / "engine/words/counts.py").unlink()
    assert History(checkout).age(exact(first)).changed == ("engine/scoring", "engine/words")


def test_a_module_that_only_moves_leaves_a_record_fresh(
    checkout: Path, exact: Callable[[str], ExactnessRecord]
) -> None:
    body = "".join(f"def component_{n}(a):\n    return a + {n}\n" for n in range(20))
    commit(checkout, "engine/old.py", f"from engine.far import A\n{body}")
    first = git(checkout, "rev-parse", "HEAD")
    (checkout / "engine/scoring").mkdir()
    git(checkout, "mv", "engine/old.py", SCORING)
    commit(checkout, SCORING, f"from engine.near import A\n{body}")
    assert not History(checkout).age(exact(first)).is_stale
    commit(checkout, SCORING, body.replace("a + 7", "a + 8"))
    assert History(checkout).age(exact(first)).changed == ("engine/scoring",)


@pytest.mark.parametrize("lost", ["", "0" * 40])
def test_a_commit_that_the_history_lacks_is_stale(
    checkout: Path, exact: Callable[[str], ExactnessRecord], lost: str
) -> None:
    commit(checkout, SCORING, "A = 1\n")
    age = History(checkout).age(exact(lost))
    assert age.is_stale and age.changed == ()


def test_a_folder_without_history_and_a_shallow_clone_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(FreshnessError, match=r"empty has no history of git .*; clone the repository"):
        History(tmp_path / "empty")
    whole = tmp_path / "whole"
    whole.mkdir()
    git(whole, "init", "-q")
    commit(whole, "a", "1")
    commit(whole, "a", "2")
    git(tmp_path, "clone", "-q", "--depth", "1", whole.as_uri(), "part")
    with pytest.raises(FreshnessError, match="part is cut off; fetch the rest: git fetch --unshallow"):
        History(tmp_path / "part")


def test_a_note_counts_records_and_names_code() -> None:
    fresh, stale = Age("a", "0", True, ()), Age("b", "1", True, ("engine/words", "engine/scoring"))
    lost = Age("c", "", False, ())
    assert stale_note([fresh]) == ""
    assert stale_note([fresh, stale, lost]) == (
        "Stale: 1 of 3 records measured before the code of `engine/scoring`, `engine/words` changed; "
        "1 of 3 records measured at a commit that the history lacks."
    )
    many = replace(stale, changed=tuple(f"engine/{letter}" for letter in "abcdefghij"))
    assert stale_note([many]).endswith("`engine/h` and 2 more changed.")
