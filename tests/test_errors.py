"""The base class of errors, its leaves, and the tree in the docstring that shows them."""

from __future__ import annotations

import errno
import os
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from safetensors import SafetensorError, safe_open

from engine import errors
from engine.errors import (
    BudgetExceeded,
    EngineError,
    IndexBusy,
    IndexDamaged,
    StorageError,
    command_line,
    fault,
    install_command,
    named_faults,
)
from engine.index import Index
from engine.store.catalog import CATALOG_FILE
from indexer.building.builder import build
from indexer.cli import main
from indexer.upkeep.verify import verify
from tests.fakes import FakeEncoder, make_corpus

LEAVES = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, EngineError)]


def test_the_tree_in_the_docstring_shows_all_errors_and_other_errors_stay_what_they_are() -> None:
    shown = re.findall(r"^    (?:[├└]── )?(\w+)", errors.__doc__ or "", re.MULTILINE)
    assert sorted(shown) == sorted(leaf.__name__ for leaf in LEAVES)
    assert fault(ValueError("a bug")) is None
    assert fault(IndexBusy("ours")) is None
    assert fault(BrokenPipeError(errno.EPIPE, "Broken pipe")) is None


@pytest.mark.parametrize("leaf", LEAVES)
def test_the_docstring_of_every_error_states_when_it_is_raised(leaf: type[EngineError]) -> None:
    assert re.match(r"(Raised|Base) ", leaf.__doc__ or "")


@pytest.mark.parametrize(
    ("extra", "command"),
    [
        ("serve", "pip install 'fastapi>=0.165' uvicorn"),
        ("none", "pip install pack"),  # an extra that the installed metadata do not know
    ],
)
def test_the_command_names_packages_of_the_registry(extra: str, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    required = ["click>=8", 'fastapi>=0.165; extra == "serve"', 'uvicorn; extra == "serve"', 'x; extra == "other"']
    monkeypatch.setattr("importlib.metadata.requires", lambda _: required)
    assert install_command(extra, "Pack") == command


def test_a_command_in_a_message_can_be_pasted_into_a_shell() -> None:
    assert command_line("index", Path("it's my.lm"), "PATH...") == """longmatch index 'it'"'"'s my.lm' PATH..."""
    assert command_line("index", Path("-x.lm"), "-p", 2) == "longmatch index ./-x.lm -p 2"


def sqlite_error(code: int, text: str = "the reason") -> sqlite3.Error:
    error = sqlite3.OperationalError(text)
    error.sqlite_errorcode = code  # type: ignore[misc]
    return error


def system_error(code: int) -> OSError:
    return OSError(code, "the reason", __file__)


@pytest.mark.parametrize(
    ("error", "kind", "next_step"),
    [
        (system_error(errno.EIO), StorageError, "longmatch upkeep verify INDEX"),
        (system_error(errno.EACCES), StorageError, "chmod"),
        (system_error(errno.EROFS), StorageError, "name another folder"),
        (system_error(errno.EMFILE), StorageError, "ulimit -n"),
        (system_error(errno.ENOSPC), BudgetExceeded, "free some space"),
        (system_error(errno.EDQUOT), BudgetExceeded, "free some space"),
        (system_error(errno.EBUSY), StorageError, "run the command again"),
        (sqlite_error(sqlite3.SQLITE_BUSY), IndexBusy, "wait for it"),
        (sqlite_error(sqlite3.SQLITE_FULL), BudgetExceeded, "free some space"),
        (sqlite_error(sqlite3.SQLITE_READONLY), StorageError, "name another folder"),
        (sqlite_error(sqlite3.SQLITE_CANTOPEN), StorageError, "name another folder"),
        (sqlite_error(sqlite3.SQLITE_IOERR_WRITE), StorageError, "verify"),
        (sqlite_error(sqlite3.SQLITE_IOERR_READ), IndexDamaged, "verify"),
        (sqlite_error(sqlite3.SQLITE_CORRUPT), IndexDamaged, "verify"),
        (sqlite_error(sqlite3.SQLITE_NOTADB), IndexDamaged, "verify"),
    ],
)
def test_an_error_of_the_system_or_of_sqlite_names_file_reason_and_next_step(
    error: Exception, kind: type[EngineError], next_step: str
) -> None:
    named = fault(error, __file__)
    assert type(named) is kind
    assert str(named).startswith(__file__) and "the reason" in str(named) and next_step in str(named)


def test_a_catalog_that_is_gone_is_damage(tmp_path: Path) -> None:
    Path(tmp_path / "there").touch()
    gone, there = (fault(sqlite_error(sqlite3.SQLITE_CANTOPEN), str(tmp_path / name)) for name in ("gone", "there"))
    assert type(gone) is IndexDamaged and type(there) is StorageError


def test_errors_of_safetensors_are_a_full_disk_or_damage(tmp_path: Path) -> None:
    text = "Error while serializing: I/O error: "
    for reason in ('Os { code: 28, kind: StorageFull, message: "No space left" }', "No space left (os error 28)"):
        named = fault(SafetensorError(text + reason), "x.lm/shards/000001.safetensors")
        assert type(named) is BudgetExceeded and str(named).startswith("x.lm/shards/000001.safetensors: ")
    (tmp_path / "short.safetensors").write_bytes(b"\x40\x00\x00\x00\x00\x00\x00\x00{}")
    with pytest.raises(SafetensorError) as raised, safe_open(tmp_path / "short.safetensors", "np"):
        pass
    named = fault(raised.value, "short.safetensors")
    assert type(named) is IndexDamaged and "short.safetensors cannot be read" in str(named)


def test_a_checkpoint_that_torch_cannot_write_is_named() -> None:
    error = RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 576 vs 534")
    named = fault(error, "out/run")
    assert type(named) is BudgetExceeded and str(named).startswith(
        "out/run could not be written, as on a full disk; free"
    )
    assert fault(RuntimeError("another"), "out/run") is None


def test_a_decorated_class_names_faults_of_methods_and_properties() -> None:
    @named_faults
    class Reader:
        """Fails."""

        def __init__(self, path: str) -> None:
            self.path = path

        @classmethod
        def open(cls, path: str) -> Reader:
            raise OSError(errno.EIO, "I/O error", path)

        def read(self) -> None:
            """Read."""
            raise OSError(errno.EACCES, "Permission denied", self.path)

        @property
        def size(self) -> int:
            raise OSError(errno.EMFILE, "Too many open files", self.path)

    calls: list[Callable[[], Any]] = [lambda: Reader.open("a"), Reader("a").read, lambda: Reader("a").size]
    for call in calls:
        with pytest.raises(StorageError, match=r"^a: ") as raised:
            call()
        assert isinstance(raised.value.__cause__, OSError)
    assert Reader.read.__doc__ == "Read."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    build(tmp_path / "x.lm", make_corpus(4), encoder=FakeEncoder())
    return tmp_path / "x.lm"


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EROFS, errno.EMFILE])
def test_a_failing_write_names_the_file_and_next_step(folder: Path, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("engine.store.durable.os.fsync", refuse)
    with pytest.raises(EngineError) as raised:
        build(folder, make_corpus(6), encoder=FakeEncoder())
    assert str(folder) in str(raised.value) and os.strerror(code) in str(raised.value)
    monkeypatch.undo()
    assert build(folder, make_corpus(6), encoder=FakeEncoder()).n_added == 2


@pytest.mark.parametrize("code", [errno.EACCES, errno.EMFILE])
def test_a_shard_that_cannot_be_opened_is_not_missing(folder: Path, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.open

    def opened(path: Path, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401
        if path.suffix == ".safetensors":
            raise OSError(code, os.strerror(code), str(path))
        return real(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", opened)
    with pytest.raises(StorageError, match=r"shards/0+1\.safetensors: "):
        Index.open(folder, encoder=FakeEncoder())
    with pytest.raises(StorageError, match=r"shards/0+1\.safetensors: "):
        verify(folder)


def test_a_locked_catalog_is_busy(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.store.catalog.BUSY_SECONDS", 0)
    holder = sqlite3.connect(folder / CATALOG_FILE, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(IndexBusy, match=r"catalog\.sqlite: database is locked; another process"):
            build(folder, make_corpus(6), encoder=FakeEncoder())
    finally:
        holder.close()


@pytest.mark.parametrize(
    "command",
    [
        *("index {x} {x}.txt --encode none", "query {x} --id doc-0000", "query {x} --text words", "show {x}"),
        *(f"upkeep {name} {{x}}" for name in ("verify", "repair", "compact", "rebase")),
    ],
)
def test_unreadable_files_cause_no_traceback(folder: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path(f"{folder}.txt").write_text("some words of a new document")

    def refuse(path: Path, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))

    for name in ("open", "read_text"):
        monkeypatch.setattr(Path, name, refuse)
    ended = CliRunner().invoke(main, command.format(x=folder).split())
    assert ended.exit_code == 1 and isinstance(ended.exception, SystemExit)
    assert "Too many open files; raise the limit of open files: ulimit -n 4096" in ended.stderr


def test_errors_of_a_source_of_documents_are_raised_unchanged(tmp_path: Path) -> None:
    def documents() -> Any:  # noqa: ANN401
        yield make_corpus(1)[0]
        raise LookupError("the caller's own")

    with pytest.raises(LookupError):
        build(tmp_path / "x.lm", documents(), encoder=FakeEncoder())
