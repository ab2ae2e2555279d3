"""The system calls of an operation, recorded by strace, and the disks that a power loss may leave after any of them.

The model is that of POSIX: what was written to a file, or changed in a folder, is on disk once that file or folder was
synced. Until then each change, and each page of a write, may be on disk or not, in any order. A renamed name is there
or not, never half. SQLite's files are recorded like all others; its shared memory is left out, as it is made again.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

PAGE = 4096
CALLS = (
    "openat,open,creat,close,dup,dup2,dup3,write,pwrite64,writev,pwritev,pwritev2,lseek,ftruncate,truncate,fallocate,"
    "sendfile,copy_file_range,fsync,fdatasync,rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,"
    "mkdir,mkdirat,rmdir"
)
_LINE = re.compile(r"(\d+) +(.*)")
_CALL = re.compile(r"(\w+)\((.*)\) += (-?\d+)")
_UNFINISHED, _RESUMED = " <unfinished ...>", re.compile(r"<\.\.\. \w+ resumed>")
_STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')


@dataclass(eq=False)
class Node:
    """A file or folder; a folder has entries."""

    entries: dict[str, Node] | None = None
    data: bytearray = field(default_factory=bytearray)


@dataclass(frozen=True)
class Change:
    """A page of data, a new size, or names of one folder or two; durable once `synced_by` was synced."""

    synced_by: Node
    offset: int = 0
    data: bytes | None = None
    size: int | None = None
    names: tuple[tuple[Node, str, Node | None], ...] = ()


@dataclass
class Trace:
    """What an operation did to a folder: changes in order, and which were durable when."""

    root: Node
    changes: list[Change] = field(default_factory=list)
    synced: list[tuple[int, Node]] = field(default_factory=list)  # after so many changes
    marks: list[int] = field(default_factory=list)  # commits were reported after so many changes

    def durable(self, n: int, n_syncs: int) -> set[int]:
        """The changes among the first n that the first syncs made durable."""
        last = {id(node): at for at, node in self.synced[:n_syncs]}
        return {one for one in range(n) if one < last.get(id(self.changes[one].synced_by), 0)}

    def moments(self) -> Iterator[tuple[int, int]]:
        """Every moment between two system calls: the number of changes and of syncs before it."""
        n_syncs = 0
        for n in range(len(self.changes) + 1):
            yield n, n_syncs
            while n_syncs < len(self.synced) and self.synced[n_syncs][0] == n:
                n_syncs += 1
                yield n, n_syncs

    def disk(self, changes: Sequence[int]) -> dict[str, bytes | None]:
        """All files, and folders as None, where only these changes are on disk."""
        folders: dict[int, dict[str, Node]] = {}
        contents: dict[int, bytearray] = {}
        for change in (self.changes[one] for one in changes):
            for folder, name, node in change.names:
                entries = folders.setdefault(id(folder), dict(folder.entries or {}))
                entries.pop(name, None)
                if node is not None:
                    entries[name] = node
            if not change.names:
                content = contents.setdefault(id(change.synced_by), bytearray(change.synced_by.data))
                size = change.size if change.data is None else max(len(content), change.offset + len(change.data))
                assert size is not None
                del content[size:]
                content.extend(bytes(size - len(content)))
                if change.data is not None:
                    content[change.offset : change.offset + len(change.data)] = change.data
        disk: dict[str, bytes | None] = {}

        def visit(folder: Node, path: str) -> None:
            for name, node in folders.get(id(folder), folder.entries or {}).items():
                if node.entries is None:
                    if not name.endswith("-shm"):
                        disk[path + name] = bytes(contents.get(id(node), node.data))
                else:
                    disk[path + name] = None
                    visit(node, f"{path}{name}/")

        visit(self.root, "")
        return disk

    def disks(self, n: int, n_syncs: int, rng: np.random.Generator, n_random: int) -> Iterator[list[int]]:
        """The changes on disk after a power loss: all, only the durable, all but one, only one, some by chance."""
        durable = self.durable(n, n_syncs)
        open_changes = sorted(set(range(n)) - durable)
        yield list(range(n))
        yield sorted(durable)
        if len(open_changes) < 2:
            return
        for one in rng.permutation(open_changes)[:n_random]:
            yield sorted(set(range(n)) - {int(one)})
            yield sorted({*durable, int(one)})
        for _ in range(n_random):
            share = rng.random()
            yield sorted({*durable, *(one for one in open_changes if rng.random() < share)})


class _Recorder:
    """Follows the system calls of one process on a folder."""

    def __init__(self, root: Path, mark: Path) -> None:
        self._place, self._mark = str(root), str(mark)
        self.trace = Trace(_node_of(root))
        self._now: dict[int, dict[str, Node]] = {}  # the entries of each folder, and
        self._sizes: dict[int, int] = {}  # the size of each file, by now
        self._open: dict[int, Node | None] = {}
        self._offsets: dict[int, int] = {}

    def entries(self, folder: Node) -> dict[str, Node]:
        assert folder.entries is not None
        return self._now.setdefault(id(folder), dict(folder.entries))

    def _change(self, change: Change) -> None:
        self.trace.changes.append(change)
        for folder, name, node in change.names:
            self.entries(folder).pop(name, None)
            if node is not None:
                self.entries(folder)[name] = node

    def _find(self, base: str, path: str) -> tuple[Node, str, Node | None] | None:
        """Folder, name and node of a path; None for one elsewhere."""
        node: Node | None = self._open.get(int(base)) if base.isdecimal() else None
        if path.startswith("/") or node is None:
            if not f"{path}/".startswith(f"{self._place}/"):
                return None
            node, path = self.trace.root, path[len(self._place) :]
        folder, name = node, ""
        for name in (part for part in path.split("/") if part not in ("", ".")):
            if node is None or node.entries is None:
                return None
            folder, node = node, self.entries(node).get(name)
        return folder, name, node

    def call(self, name: str, arguments: list[str], result: int) -> None:  # noqa: C901 - one case each
        """Follow one call that succeeded."""
        match name.removesuffix("2"):
            case "openat":
                self._opened(arguments, result)
            case "close":
                self._open.pop(int(arguments[0]), None)
            case "lseek":
                self._offsets[int(arguments[0])] = result
            case "write" | "writev" | "pwrite64" | "pwritev" | "sendfile" | "copy_file_range":
                assert self._open.get(int(arguments[0])) is None or name in ("write", "writev", "pwrite64"), name
                self._written(name, arguments)
            case "ftruncate" if node := self._open.get(int(arguments[0])):
                self._change(Change(node, size=int(arguments[1])))
                self._sizes[id(node)] = int(arguments[1])
            case "fsync" | "fdatasync" if node := self._open.get(int(arguments[0])):
                self.trace.synced.append((len(self.trace.changes), node))
            case "mkdir" | "mkdirat" | "unlink" | "unlinkat" | "rmdir":
                base, path = arguments[:2] if name.endswith("at") else ("", arguments[0])
                if found := self._find(base, path):
                    self._change(Change(found[0], names=((*found[:2], Node({}) if "mkdir" in name else None),)))
            case "rename" | "renameat":
                pairs = (
                    [("", arguments[0]), ("", arguments[1])] if name == "rename" else [arguments[:2], arguments[2:4]]
                )
                source, target = (self._find(*pair) for pair in pairs)
                assert (source is None) == (target is None)
                if source and target:
                    names = ((*source[:2], None), (*target[:2], source[2]))
                    self._change(Change(target[0], names=names))
            case _:
                assert not any(self._open.get(int(one)) for one in arguments[:1] if one.isdecimal()), name
                assert not any(self._find("", one) for one in arguments if one.startswith("/")), name

    def _opened(self, arguments: list[str], fd: int) -> None:
        base, path, flags = arguments[:3]
        self._offsets[fd] = 0
        self._open[fd] = None
        if path == self._mark and "O_WRONLY" in flags:
            self.trace.marks.append(len(self.trace.changes))
        if found := self._find(base, path):
            folder, name, node = found
            if node is None:
                assert "O_CREAT" in flags and "O_APPEND" not in flags
                node = Node()
                self._change(Change(folder, names=((folder, name, node),)))
            elif "O_TRUNC" in flags:
                self._change(Change(node, size=0))
                self._sizes[id(node)] = 0
            self._open[fd] = node

    def _written(self, name: str, arguments: list[str]) -> None:
        fd = int(arguments[0])
        if (node := self._open.get(fd)) is None:
            return
        data, start = arguments[1].encode("latin-1"), int(arguments[-1]) if name == "pwrite64" else self._offsets[fd]
        if name != "pwrite64":
            self._offsets[fd] += len(data)
        stop = start + len(data)
        for first in [start, *range(start // PAGE * PAGE + PAGE, stop, PAGE)]:
            page = data[first - start : min(stop, first // PAGE * PAGE + PAGE) - start]
            self._change(Change(node, offset=first, data=page))


def _node_of(path: Path) -> Node:
    if path.is_dir():
        return Node({each.name: _node_of(each) for each in path.iterdir()})
    return Node(data=bytearray(path.read_bytes()))


def record(module: str, name: str, root: Path) -> Trace:
    """Run `python -m module name root mark` under strace, and follow its calls."""
    mark, log = root.with_name("mark"), root.with_name("calls")
    recorder = _Recorder(root, mark)
    strace = ["strace", "-f", "--seccomp-bpf", "-xx", "-s", str(2**28), "-e", f"trace={CALLS}", "-o", str(log)]
    subprocess.run([*strace, sys.executable, "-m", module, name, str(root), str(mark)], check=True)
    begun: dict[str, str] = {}
    with log.open("r") as lines:
        for line in lines:
            match = _LINE.match(line)
            thread, rest = match[1], match[2]
            if rest.endswith(_UNFINISHED):
                begun[thread] = rest.removesuffix(_UNFINISHED)
                continue
            if rest.startswith("<..."):
                rest = begun.pop(thread) + _RESUMED.sub("", rest)
            if (call := _CALL.match(rest)) and int(call[3]) >= 0:
                recorder.call(call[1], _arguments(call[1], call[2], int(call[3])), int(call[3]))
    log.unlink()
    followed = recorder.trace.disk(range(len(recorder.trace.changes)))
    assert {name: content for name, content in followed.items() if content is not None} == {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and not path.name.endswith("-shm")
    }
    return recorder.trace


def _arguments(name: str, text: str, result: int) -> list[str]:
    strings = [bytes.fromhex(hexes.replace("\\x", "")).decode("latin-1") for hexes in _STRING.findall(text)]
    if name in ("writev", "pwritev"):
        return [text.partition(",")[0], "".join(strings)[:result]]
    arguments = [strings.pop(0) if part.startswith('"') else part for part in text.split(", ")]
    if name in ("write", "pwrite64"):
        arguments[1] = arguments[1][:result]
    return arguments


def write_disk(disk: dict[str, bytes | None], root: Path) -> None:
    """Make a folder that holds exactly this."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    for name, content in disk.items():
        if content is None:
            (root / name).mkdir(parents=True, exist_ok=True)
        else:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(content)
