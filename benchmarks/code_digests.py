"""Digests of code, of this checkout or of one of its commits; a record holds those of the code that it measured."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

_DIGITS = 12
# Ideographs of Unicode 15, which `repr` escapes in Python 3.11 and prints in later versions.
_NEWLY_PRINTED = re.compile("[\U00031350-\U000323af]")
NO_CODE = "nothing"  # in place of a digest, where the code does not exist


def digests(paths: Sequence[str], root: Path) -> dict[str, str]:
    """The digest of the Python of each file and folder below `root`, by path.

    File names do not count, so that code that only moves keeps its digest.
    """
    return {path: _of_all(_code(file.read_text("utf-8", "replace")) for file in _files(root / path)) for path in paths}


def digests_at(commit: str, paths: Sequence[str], root: Path) -> dict[str, str]:
    """The digests of `digests` for the code at a commit; {} without git, or if its history has no such commit."""
    try:
        listed = _git(root, "ls-tree", "-r", "-z", "--full-tree", commit, "--", *paths).split("\0")[:-1]
    except (OSError, subprocess.CalledProcessError):
        return {}
    blobs = {name: fields.split()[2] for fields, _, name in (line.partition("\t") for line in listed)}
    return {path: _of_all(_code_of_blob(root, blob) for blob in _below(path, blobs)) for path in paths}


def _files(path: Path) -> list[Path]:
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))
    return [file for file in files if file.name != "__init__.py"]


def _below(path: str, blobs: Mapping[str, str]) -> list[str]:
    return [
        blob
        for name, blob in blobs.items()
        if name == path or (name.startswith(f"{path}/") and name.endswith(".py") and Path(name).name != "__init__.py")
    ]


def _of_all(codes: Iterable[str]) -> str:
    found = sorted(codes)
    return _digest("\0".join(found)) if found else NO_CODE


@cache
def _code_of_blob(root: Path, blob: str) -> str:
    return _code(_git(root, "cat-file", "blob", blob))


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, check=True)
    return done.stdout.decode("utf-8", errors="replace")


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:_DIGITS]


@cache
def _code(text: str) -> str:
    """Digest of Python without comments, docstrings, imports and layout; other text is digested unchanged.

    Imports are left out so that moving a module does not make a record stale.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return _digest(text)
    for node in ast.walk(tree):
        if isinstance(body := getattr(node, "body", None), list):
            node.body = [one for one in body if not isinstance(one, ast.Import | ast.ImportFrom)]  # type: ignore[attr-defined]
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return _digest(_dump(tree))


def _dump(value: object) -> str:
    """A syntax tree as text, equal under every version of Python: `ast.dump` names fields that later versions add."""
    if isinstance(value, list):
        return f"[{','.join(map(_dump, value))}]"
    if not isinstance(value, ast.AST):
        return _NEWLY_PRINTED.sub(lambda found: f"\\U{ord(found[0]):08x}", repr(value))
    fields = (f"{name}={_dump(of)}" for name, of in _fields(value) if of is not None and of != [])
    return f"{type(value).__name__}({','.join(fields)})"


def _fields(node: ast.AST) -> Iterator[tuple[str, object]]:
    """The fields of a node; some versions of Python put empty texts into f-strings, which are left out."""
    for name, value in ast.iter_fields(node):
        if isinstance(node, ast.JoinedStr) and isinstance(value, list):
            yield name, [one for one in value if not (isinstance(one, ast.Constant) and one.value == "")]
        else:
            yield name, value
