"""Paths, folders, globs and standard input as one stream of documents, in an order that never changes."""

from __future__ import annotations

import glob
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from engine.document import Document
from engine.errors import DocumentError
from engine.readers import Unreadable, is_readable, jsonl
from indexer.inclusion import without_included
from indexer.reading import DocumentReader
from indexer.requests import Request, is_json_lines

STDIN = "-"


def corpus_files(paths: Sequence[str]) -> list[tuple[Path, str]]:
    """Find the files of a corpus.

    Args:
        paths: files, folders (searched through, hidden files and files that another one
            includes left out) and glob patterns.

    Returns:
        (file, doc_id), sorted by doc_id: the path below the folder that was named,
        or the file's name.

    Raises:
        DocumentError: a path does not exist, or nothing readable was found.
    """
    found: dict[Path, str] = {}
    for given in paths:
        for path in _expand(given):
            if path.is_dir():
                for file in without_included(_files_below(path)):
                    found.setdefault(file, file.relative_to(path).as_posix())
            else:
                found.setdefault(path, path.name)
    if not found:
        raise DocumentError(f"no readable file in {', '.join(paths)}; formats: see longmatch index --help")
    return sorted(found.items(), key=lambda item: (item[1], str(item[0])))


def _files_below(folder: Path) -> list[Path]:
    """Readable files of a folder and its folders that are not hidden."""
    return [
        file
        for file in folder.rglob("*")
        if is_readable(file)
        and not any(part.startswith(".") for part in file.relative_to(folder).parts)
        and file.is_file()
    ]


def _expand(given: str) -> list[Path]:
    path = Path(given)
    if path.exists():
        return [path]
    matches = sorted(glob.glob(given, recursive=True))  # noqa: PTH207 - Path.glob takes no absolute pattern
    if not matches:
        raise DocumentError(f"{given} does not exist and no file matches it as a pattern")
    return [Path(match) for match in matches]


def count_files(paths: Sequence[str]) -> int | None:
    """Files of a corpus, where that says how many documents to expect; None with JSON lines or stdin."""
    if STDIN in paths:
        return None
    files = corpus_files(paths)
    return None if any(is_json_lines(str(file)) for file, _ in files) else len(files)


def read_corpus(paths: Sequence[str], reader: DocumentReader | None = None) -> Iterator[Document | Unreadable]:
    """Read the documents of paths one after another; `-` reads JSON lines from standard input.

    Args:
        paths: files, folders and patterns, as in `corpus_files`.
        reader: reads the files, and stays open; by default one with the usual limits. Standard input is read
            in this process, without limits of time and memory.

    Raises:
        DocumentError: a path does not exist, or nothing readable was found.
    """
    named = [path for path in paths if path != STDIN]
    if STDIN in paths:
        yield from jsonl.stream(sys.stdin.buffer, "stdin")
    requests = [Request(str(file), doc_id) for file, doc_id in corpus_files(named)] if named else []
    if reader is not None:
        yield from reader.read(requests)
    elif requests:
        with DocumentReader() as own:
            yield from own.read(requests)
