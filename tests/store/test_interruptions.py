"""Commands that are killed, or meet a full disk, at any change of a file or commit: nothing is lost or half done."""

import errno
import os
import signal
import sqlite3
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from shutil import copytree, rmtree
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, event

from engine.errors import EngineError
from engine.store import writable
from engine.store.partitioned import stored_sources
from engine.text.document import Document
from indexer.building.builder import build
from indexer.building.rewriting import partition
from indexer.generation.generations import compact
from indexer.generation.reference import rebase
from indexer.upkeep.backup import backup, restore
from indexer.upkeep.repair import remove, repair
from indexer.upkeep.verify import verify
from tests.contents import Contents, read_contents
from tests.fakes import FakeEncoder, make_corpus

DOCUMENTS = make_corpus(20)
CHANGED = [replace(document, text=f"{document.text}!") for document in DOCUMENTS[:8]]
REMOVED = [document.doc_id for document in DOCUMENTS[2:12:3]]
CHANGES = ("replace", "rename", "fsync", "unlink", "mkdir", "rmdir")  # functions of os
N_MOMENTS = int(os.environ.get("MOMENTS", "3"))  # of each operation and fault; every one where it has no more


def index(folder: Path, documents: Sequence[Document], factory: str = "Flat", **options: Any) -> None:  # noqa: ANN401
    build(folder / "x.lm", documents, encoder=FakeEncoder(), factory=factory, recall_floor=0.0, **options)


def remove_some(folder: Path) -> None:
    present = {doc_id for doc_id, _ in stored_sources(folder / "x.lm")}
    if doc_ids := [doc_id for doc_id in REMOVED if doc_id in present]:
        remove(folder / "x.lm", doc_ids)


def damage_and_index(folder: Path) -> None:
    index(folder, DOCUMENTS[:14], "IVF4,Flat")
    for path in [*(folder / "x.lm").glob("shards/*"), *(folder / "x.lm").glob("ann/*/*.faiss")]:
        path.write_bytes(path.read_bytes()[:-9])


def split(folder: Path) -> None:
    if not (folder / "x.parts").exists():
        partition(folder / "x.lm", folder / "x.parts", 2)


def copy_through_a_backup(folder: Path) -> None:
    if not (folder / "x.backup").exists():
        backup(folder / "x.lm", folder / "x.backup")
    if not (folder / "back.lm").exists():
        restore(folder / "x.backup", folder / "back.lm")


def vectors(folder: Path) -> None:
    index(folder, DOCUMENTS[:14])


def words(folder: Path) -> None:
    build(folder / "x.lm", DOCUMENTS, encoder=None, encode="none")


def vectors_without_some(folder: Path) -> None:
    vectors(folder)
    remove_some(folder)


def ivf(folder: Path) -> None:
    index(folder, DOCUMENTS[:14], "IVF4,Flat")


# The state before an operation, the operation, which a second run finishes, and the index that is compared.
OPERATIONS: Mapping[str, tuple[Callable[[Path], None], Callable[[Path], object], str]] = {
    "index words": (lambda _: None, words, "x.lm"),
    "gain vectors": (words, lambda at: index(at, DOCUMENTS), "x.lm"),
    "index vectors": (lambda _: None, vectors, "x.lm"),
    "extend IVF": (ivf, lambda at: index(at, DOCUMENTS, "IVF4,Flat"), "x.lm"),
    "update and prune": (vectors, lambda at: index(at, CHANGED + DOCUMENTS[10:18], prune=True), "x.lm"),
    "remove": (vectors, remove_some, "x.lm"),
    "compact": (vectors_without_some, lambda at: compact(at / "x.lm"), "x.lm"),
    "rebase": (vectors_without_some, lambda at: rebase(at / "x.lm"), "x.lm"),
    "repair": (damage_and_index, lambda at: repair(at / "x.lm", encode=True, encoder=FakeEncoder()), "x.lm"),
    "partition": (vectors, split, "x.parts"),
    "backup and restore": (ivf, copy_through_a_backup, "back.lm"),
}


def act(name: str, fault: str, at: int, folder: Path, told: Path) -> None:
    """Run an operation with a fault at change number `at`, and write the number of changes; in a process of its own."""
    changes = count()

    def changed(*_: object) -> None:
        if next(changes) == at:
            if fault == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            raise OSError(errno.ENOSPC, "No space left on device")

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401
            changed()
            return function(*arguments, **options)

        return call

    for change in CHANGES:
        setattr(os, change, watched(getattr(os, change)))
    engine_of = writable.engine_of

    def watched_engine(connection: sqlite3.Connection) -> Engine:
        engine = engine_of(connection)
        event.listen(engine, "commit", lambda _: changed())
        return engine

    writable.engine_of = watched_engine  # type: ignore[attr-defined]
    try:
        OPERATIONS[name][1](folder)
    except EngineError:
        assert fault == "full disk"
    told.write_text(str(next(changes)))


def in_a_process(*arguments: object) -> int | None:
    context = get_context("forkserver")  # imports once, and uses no threads before it forks
    context.set_forkserver_preload([__name__])
    process = context.Process(target=act, args=arguments)
    process.start()
    process.join(120)
    return process.exitcode


def documents_of(path: Path) -> dict[str, bytes]:
    """The vectors of each document that a reader sees; {} where there is no index yet, or it is refused."""
    try:
        return {name: contents.vectors for name, contents in read_contents(path, []).documents.items()}
    except EngineError:
        return {}


def contents_of(path: Path) -> Contents:
    return read_contents(path, sorted(read_contents(path, []).documents)[:2])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "fault"),
    [*((name, "kill") for name in OPERATIONS), *((name, "full disk") for name in ("extend IVF", "update and prune"))],
)
def test_an_interrupted_operation_is_finished_by_the_same_command(name: str, fault: str, tmp_path: Path) -> None:
    begin, run_again, place = OPERATIONS[name]
    (tmp_path / "before").mkdir()
    begin(tmp_path / "before")
    clean = copytree(tmp_path / "before", tmp_path / "clean")
    assert in_a_process(name, "none", -1, clean, tmp_path / "told") == 0
    n_changes, expected = int((tmp_path / "told").read_text()), contents_of(clean / place)
    known = [*documents_of(tmp_path / "before" / place).items(), *documents_of(clean / place).items()]
    parts = np.unique(np.linspace(0, n_changes, N_MOMENTS, endpoint=False).astype(int))
    for at in parts + np.random.default_rng(len(name)).integers(0, max(1, n_changes // N_MOMENTS), len(parts)):
        work = copytree(tmp_path / "before", tmp_path / "work")
        exit_code = in_a_process(name, fault, int(at), work, tmp_path / "told")
        assert exit_code == (-signal.SIGKILL if fault == "kill" else 0), at
        assert [name for name, seen in documents_of(work / place).items() if (name, seen) not in known] == [], at
        run_again(work)
        assert (verify(work / place), contents_of(work / place)) == ([], expected), at
        rmtree(work)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(steps=st.lists(st.sampled_from(["add", "update", "remove", "compact", "rebase", "extend"]), max_size=6))
def test_any_sequence_of_changes_leaves_the_documents_of_a_model(steps: list[str]) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        index(folder, DOCUMENTS[:10])
        model = {document.doc_id: document.text for document in DOCUMENTS[:10]}
        for step in steps:
            match step:
                case "add" | "extend":
                    index(folder, DOCUMENTS[:14], "IVF4,Flat" if step == "extend" else "Flat")
                    model |= {document.doc_id: document.text for document in DOCUMENTS[:14]}
                case "update":
                    index(folder, CHANGED)
                    model |= {document.doc_id: document.text for document in CHANGED}
                case "remove":
                    remove_some(folder)
                    model = {doc_id: text for doc_id, text in model.items() if doc_id not in REMOVED}
                case _:
                    {"compact": compact, "rebase": rebase}[step](folder / "x.lm")
            found = read_contents(folder / "x.lm", []).documents
            assert {doc_id: contents.document.text for doc_id, contents in found.items()} == model
        assert verify(folder / "x.lm") == []
