"""Mounts of an index: read-only mounts and network file systems are recognised by name."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from engine.errors import IndexBusy, StorageError
from engine.index import Index
from engine.store import mounts
from engine.store.catalog import CATALOG_FILE
from engine.store.mounts import Mount, mount_of, network_note, refuse_read_only
from engine.store.writer import Writer
from indexer.building.builder import build
from tests.fakes import FakeEncoder, make_corpus
from tests.store.written import ENCODER, commit

_LISTED = """\
/dev/sda1 / ext4 rw,relatime 0 0
server:/home /home nfs4 rw,vers=4.2 0 0
/dev/sdb1 /home/disk ext4 rw 0 0
/dev/sr0 /media/a\\040disc iso9660 ro,nosuid 0 0
share /home/disk cifs rw 0 0
"""


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    (tmp_path / "mounts").write_text(_LISTED)
    return tmp_path / "mounts"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/data/x.lm", Mount(Path("/"), "ext4", is_read_only=False)),
        ("/home/anna/x.lm", Mount(Path("/home"), "nfs4", is_read_only=False)),
        ("/homes/x.lm", Mount(Path("/"), "ext4", is_read_only=False)),
        ("/home/disk/x.lm", Mount(Path("/home/disk"), "cifs", is_read_only=False)),
        ("/media/a disc/x.lm", Mount(Path("/media/a disc"), "iso9660", is_read_only=True)),
    ],
)
def test_the_innermost_and_latest_mount_counts(path: str, expected: Mount, listed: Path) -> None:
    assert mount_of(Path(path), listed) == expected


def test_a_network_file_system_is_named(listed: Path) -> None:
    note = network_note(Path("/home/anna/x.lm"), listed)
    assert "x.lm lies on a network file system (nfs4 at /home)" in note
    assert network_note(Path("/data/x.lm"), listed) == ""
    assert network_note(Path("/data/x.lm"), listed / "absent") == ""


def test_a_mount_for_reading_alone_is_refused(listed: Path) -> None:
    with pytest.raises(StorageError, match=r"lies on /media/a disc \(iso9660\), which is mounted read-only"):
        refuse_read_only(Path("/media/a disc/x.lm"), listed)
    refuse_read_only(Path("/data/x.lm"), listed)


def test_a_build_on_a_network_file_system_logs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mounts").write_text(f"server:/a {tmp_path} nfs rw 0 0\n")
    monkeypatch.setattr(mounts.network_note, "__defaults__", (tmp_path / "mounts",))
    lines: list[str] = []
    build(tmp_path / "x.lm", make_corpus(3), encoder=FakeEncoder(), log=lines.append)
    assert "network file system (nfs at" in lines[0]


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """An index whose last commits are in the log alone, as a killed writer may leave it."""
    folder = tmp_path / "x.lm"
    with Writer(folder) as writer:
        writer.claim(ENCODER)
        commit(writer, *make_corpus(4))
        with Index.open(folder, encoder=FakeEncoder()):  # a reader keeps the log
            commit(writer, *make_corpus(6)[4:])
            shutil.copytree(folder, tmp_path / "killed.lm", ignore=shutil.ignore_patterns("*-shm"))
    return tmp_path / "killed.lm"


def test_a_log_that_cannot_be_read_is_not_passed_over(killed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (killed / f"{CATALOG_FILE}-wal").stat().st_size
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(StorageError, match=r"cannot be written, and catalog\.sqlite-wal holds commits"):
        Index.open(killed, encoder=FakeEncoder())
    monkeypatch.undo()
    with Index.open(killed, encoder=FakeEncoder()) as index:
        assert index.n_documents == 6


_SCRIPT = """
import sys
from engine.store.snapshot import Snapshot
from engine.store.writer import Writer
from pathlib import Path
from engine.errors import StorageError
with Snapshot(Path(sys.argv[1])) as snapshot:
    print(len(snapshot.doc_ids()))
try:
    Writer(Path(sys.argv[1]))
except StorageError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_sealed_index_is_read_from_a_read_only_mount(built_folder: Path) -> None:
    mount = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1"'
    if not shutil.which("unshare") or subprocess.run(["unshare", "-rm", "true"], check=False).returncode:
        pytest.skip("no permission to mount")
    command = ["unshare", "-rm", "sh", "-c", f'{mount} || exit 77; exec "$0" -c "$2" "$1"', sys.executable]
    done = subprocess.run([*command, str(built_folder), _SCRIPT], capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip("no permission to mount")
    assert done.stdout.splitlines()[0] == "60", done.stderr
    assert "which is mounted read-only" in done.stdout


def test_the_lock_of_a_dead_process_is_taken_over(tmp_path: Path) -> None:
    reader, sender = os.pipe()
    child = os.fork()
    if child == 0:
        writer = Writer(tmp_path / "x.lm")
        os.write(sender, b"1" if writer else b"0")
        signal.pause()
    os.read(reader, 1)
    try:
        with pytest.raises(IndexBusy, match="another process is writing"):
            Writer(tmp_path / "x.lm")
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with Writer(tmp_path / "x.lm") as writer:
        writer.claim(ENCODER)
        assert len(commit(writer, *make_corpus(2))) == 2
