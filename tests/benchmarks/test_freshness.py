from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import benchmarks.records  # noqa: F401 - declares all kinds of records
from benchmarks.code_digests import digests, digests_at
from benchmarks.freshness import Age, age_of, stale_note
from benchmarks.measured import MEASURED, TASKS, modules_of
from benchmarks.peers.peer import OURS, PEERS
from benchmarks.record_file import CHECKOUT, KINDS, RESULTS
from benchmarks.runs import RUNS, read_header
from benchmarks.store.records import ExactnessRecord
from indexer.origin import Origin

SCORING = "engine/scoring/evidence.py"
BODY = "".join(f"def component_{n}(a):\n    return a + {n}\n" for n in range(20))


def write(root: Path, file: str, text: str) -> None:
    path = root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def measured(origin: Origin) -> Callable[[Path], ExactnessRecord]:
    """Makes a record of the code in a folder."""

    def made(root: Path) -> ExactnessRecord:
        code = digests(MEASURED["exactness"], root)
        return ExactnessRecord("pets", "Flat", 4, 10, 4, 9, 1e-8, 4, 0, 1e-8, 1.0, replace(origin, code=code))

    return made


def test_every_kind_declares_code_that_exists() -> None:
    kinds = {kind for kind, cls in KINDS.items() if cls.__module__.startswith("benchmarks.")}
    assert set(MEASURED) == kinds | set(TASKS)
    assert [path for paths in MEASURED.values() for path in paths if not (CHECKOUT / path).exists()] == []


# Modules of the search that decide no score, rank or candidate of an ordinary query.
SCORE_NOTHING = {
    *("__init__", "allowance", "diversity", "novelty", "on_demand", "pair_search", "partition", "request"),
    "section_names",
}


def test_every_module_of_the_search_is_declared_or_scores_nothing() -> None:
    declared = {Path(path).stem for path in MEASURED["exactness"] if path.startswith("engine/search/")}
    present = {path.stem for path in (CHECKOUT / "engine" / "search").glob("*.py")}
    assert declared | SCORE_NOTHING == present
    assert not declared & SCORE_NOTHING


def test_a_system_measures_the_code_that_its_ranking_depends_on() -> None:
    of = {system: modules_of("retrieval", system) for system in ("evidence", "words", "document", "bm25", "tfidf")}
    assert "engine/scoring" in of["words"] and "engine/encoders/mean.py" not in of["words"]
    assert "engine/scoring" not in of["document"] and set(of["evidence"]) == {*of["words"], *of["document"]}
    assert of["bm25"] == of["tfidf"] == ("benchmarks/baselines/lexical.py",)
    assert set(modules_of("summaries", "bm25")) == {"benchmarks/scisumm.py", *of["bm25"]}
    assert not {"engine/scoring", "benchmarks/peers/table.py"} & set(modules_of("peers", "txtai@256"))
    assert "engine/scoring" in modules_of("peers", "longmatch")


def test_every_peer_but_ours_declares_its_own_module() -> None:
    for name, entry in PEERS.items():
        paths = modules_of("peers", f"{name}@256" if entry.has_chunks else name)
        assert f"benchmarks/peers/{entry.module}.py" in paths
        assert (paths == MEASURED["peers"]) == (name == OURS)
        assert all((CHECKOUT / path).exists() for path in paths)


def test_every_system_of_retrieval_declares_code_that_exists() -> None:
    systems = {read_header(path)["system"] for path in (RESULTS / RUNS / "retrieval").glob("*.gz")}
    declared = {system: modules_of("retrieval", system) for system in systems}
    assert {system for system, paths in declared.items() if paths == MEASURED["retrieval"]} <= {"evidence", "chunks"}
    assert [path for paths in declared.values() for path in paths if not (CHECKOUT / path).exists()] == []


def test_a_record_is_stale_once_its_code_changes(tmp_path: Path, measured: Callable[[Path], ExactnessRecord]) -> None:
    write(tmp_path, SCORING, '"""Old."""\n\ndef score(a):\n    """Old."""\n    return a\n')
    record = measured(tmp_path)
    write(tmp_path, SCORING, '"""New."""\n\n\ndef score(a):\n    # The same.\n    return (a)\n')
    write(tmp_path, "engine/readers/html.py", "DEPTH = 1\n")
    assert age_of(record, tmp_path) == Age(record.name, record.origin.commit[:10], True, ())
    write(tmp_path, SCORING, "def score(a):\n    return a + 1\n")
    assert age_of(record, tmp_path).changed == ("engine/scoring",)
    (tmp_path / SCORING).unlink()
    write(tmp_path, "engine/words/counts.py", "A = 1\n")
    assert age_of(record, tmp_path).changed == ("engine/scoring", "engine/words")


def test_code_that_only_moves_leaves_a_record_fresh(
    tmp_path: Path, measured: Callable[[Path], ExactnessRecord]
) -> None:
    write(tmp_path, SCORING, f"from engine.far import A\n{BODY}")
    record = measured(tmp_path)
    (tmp_path / SCORING).rename(tmp_path / "engine/scoring/margin.py")
    write(tmp_path, "engine/scoring/margin.py", f"from engine.near import A\n{BODY}")
    assert not age_of(record, tmp_path).is_stale
    write(tmp_path, "engine/scoring/margin.py", BODY.replace("a + 7", "a + 8"))
    assert age_of(record, tmp_path).changed == ("engine/scoring",)


def test_a_record_without_digests_is_stale(origin: Origin, measured: Callable[[Path], ExactnessRecord]) -> None:
    age = age_of(replace(measured(CHECKOUT), origin=origin))
    assert age.is_stale and not age.is_known and age.changed == ()


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_digests_of_a_commit_are_those_of_its_checkout(tmp_path: Path) -> None:
    paths = (SCORING, "engine/words", "engine/remote")
    git(tmp_path, "init", "-q")
    write(tmp_path, SCORING, BODY)
    for name in ("__init__", "counts", "apart"):
        write(tmp_path, f"engine/words/{name}.py", f"NAME = {name!r}\n")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "Count")
    commit, then = git(tmp_path, "rev-parse", "HEAD"), digests(paths, tmp_path)
    assert digests_at(commit, paths, tmp_path) == then
    assert len(set(then.values())) == 3
    write(tmp_path, "engine/words/counts.py", "NAME = 'count'\n")
    assert digests_at(commit, paths, tmp_path) == then != digests(paths, tmp_path)


def test_a_digest_is_the_same_under_every_version_of_python(tmp_path: Path) -> None:
    """Python 3.12 prints ideographs that 3.11 escapes, and puts empty texts into nested f-strings; 3.13 does not."""
    code = 'NAME = "\U0002000b-\U000323af"\n\n\ndef shown(x: float) -> str:\n    return f"{x:>{len(NAME)}}{x:.2f}"\n'
    (tmp_path / "shown.py").write_text(code, "utf-8")
    assert digests(["shown.py"], tmp_path) == {"shown.py": "ffacbdcae392"}


@pytest.mark.parametrize("lost", ["", "0" * 40])
def test_a_commit_that_the_history_lacks_has_no_digests(tmp_path: Path, lost: str) -> None:
    git(tmp_path, "init", "-q")
    assert digests_at(lost, (SCORING,), tmp_path) == {}


def test_a_note_counts_records_and_names_code() -> None:
    fresh, stale = Age("a", "0", True, ()), Age("b", "1", True, ("engine/words", "engine/scoring"))
    lost = Age("c", "", False, ())
    assert stale_note([fresh]) == ""
    assert stale_note([fresh, stale, lost]) == (
        "Stale: 1 of 3 records measured before the code of `engine/scoring`, `engine/words` changed; "
        "1 of 3 records without digests of their code."
    )
    many = replace(stale, changed=tuple(f"engine/{letter}" for letter in "abcdefghij"))
    assert stale_note([many]).endswith("`engine/h` and 2 more changed.")
