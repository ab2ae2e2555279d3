"""What a run reads: paths, folders, globs and standard input as one stream in a fixed order, and earlier failures.

Files that are parts of other documents, as the chapters of a LaTeX document are, are left out. A failed document can be
read again if its file exists and its doc_id is known.
"""

from __future__ import annotations

import glob
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path

from engine.errors import DocumentError, IndexMismatch
from engine.readers import Unreadable, is_readable, jsonl
from engine.readers.latex_source import is_fragment
from engine.readers.reader import included_files
from engine.store.lookup import stored_failures
from engine.store.manifest import holds_index
from engine.text.document import Document
from indexer.building.doc_ids import FileIds, absolute
from indexer.reading.reader import DocumentReader
from indexer.reading.requests import Request, is_json_lines


def without_included(files: Collection[Path]) -> list[Path]:
    """Leave out files that another of these files includes, so that no text is indexed twice.

    Of files that include each other, one stays.
    """
    files = _without_fragments(files)
    parts = {file: included_files(file) for file in files}
    included = {part for one in parts.values() for part in one}
    if not included:
        return list(files)
    resolved = {file: file.resolve() for file in files}
    kept: list[Path] = []
    covered: set[Path] = set()
    # Files that no other includes come first: what they include is read as a part of them.
    for file in sorted(files, key=lambda file: (resolved[file] in included, len(file.parts), str(file))):
        if resolved[file] not in covered:
            kept.append(file)
            covered.update(part for part in parts[file] if part != resolved[file])
    return kept


STDIN = "-"
_N_NAMED = 8  # suffixes in a message
NO_SUFFIX, BROKEN_LINK = "no suffix", "broken link"  # in place of the suffix of an unsupported file


def _without_fragments(files: Collection[Path]) -> list[Path]:
    """Leave out LaTeX files that are no documents, such as drafts, in the folder of the only one that is."""
    sources = [file for file in files if ".tex" in file.suffixes[-2:]]
    fragments = {file for file in sources if is_fragment(file)}
    n_mains = Counter(file.parent for file in sources if file not in fragments)
    parts = {file for file in fragments if sum(n_mains[folder] for folder in file.parents) == 1}
    return [file for file in files if file not in parts]


def corpus_files(paths: Sequence[str], ids: FileIds | None = None) -> list[tuple[Path, str]]:
    """Find the files of a corpus.

    Args:
        paths: files, folders and glob patterns. Folders are searched recursively, without hidden files and files
            that another file includes.
        ids: the rule for doc_ids; by default they depend on the paths alone.

    Returns:
        (absolute path, doc_id), sorted by doc_id; see `indexer.building.doc_ids`. The documents in a file of JSON
        lines have doc_ids of their own.

    Raises:
        DocumentError: a path does not exist, or nothing readable was found.
    """
    roots: dict[Path, Path] = {}
    for given in paths:
        for path in map(absolute, _expand(given)):
            is_folder = path.is_dir()
            root = path if is_folder else path.parent
            for file in without_included(_files_below(path)) if is_folder else [path]:
                if file not in roots or len(root.parts) < len(roots[file].parts):
                    roots[file] = root
    if not roots:
        there = ", ".join(f"{suffix} ({n:,})" for suffix, n in list(unsupported_files(paths).items())[:_N_NAMED])
        raise DocumentError(
            f"no readable file in {', '.join(paths)}, there is {there or 'none'}; formats: see longmatch index --help"
        )
    names = (ids or FileIds()).of(roots)
    return sorted(names.items(), key=lambda item: (item[1], str(item[0])))


def _files_below(folder: Path) -> list[Path]:
    """Readable files below a folder that are not hidden."""
    return [file for file in _below(folder) if is_readable(file) and file.is_file()]


def _below(folder: Path) -> Iterator[Path]:
    """All paths below a folder that are not hidden."""
    for path in folder.rglob("*"):
        if not any(part.startswith(".") for part in path.relative_to(folder).parts):
            yield path


def unsupported_files(paths: Sequence[str]) -> dict[str, int]:
    """Count the files of folders that have no supported format.

    Args:
        paths: of the corpus, as in `corpus_files`; only folders count, since a file that is named is read.

    Returns:
        The number of files by suffix in lower case, the most frequent first. `NO_SUFFIX` and `BROKEN_LINK` count files
        without a suffix and broken links.
    """
    roots = {absolute(path) for given in paths if given != STDIN for path in _expand(given) if path.is_dir()}
    below = {path for root in roots for path in _below(root)}
    found: Counter[str] = Counter()
    for path in below:
        if path.is_symlink() and not path.exists():
            found[BROKEN_LINK] += 1
        elif path.is_file() and not is_readable(path):
            found[path.suffix.lower() or NO_SUFFIX] += 1
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def _expand(given: str) -> list[Path]:
    path = Path(given)
    if path.exists():
        return [path]
    matches = sorted(glob.glob(given, recursive=True))  # noqa: PTH207 - Path.glob takes no absolute pattern
    if not matches:
        raise DocumentError(f"{given} does not exist and no file matches it as a pattern")
    return [Path(match) for match in matches]


def count_files(paths: Sequence[str]) -> int | None:
    """The number of files of a corpus, each one document; None with JSON lines or standard input."""
    if STDIN in paths:
        return None
    files = corpus_files(paths)
    return None if any(is_json_lines(str(file)) for file, _ in files) else len(files)


def read_corpus(
    paths: Sequence[str], reader: DocumentReader | None = None, *, ids: FileIds | None = None
) -> Iterator[Document | Unreadable]:
    """Read the documents of paths one after another; `-` reads JSON lines from standard input.

    Args:
        paths: files, folders and patterns, as in `corpus_files`.
        reader: reads the files, and stays open; by default a reader with default limits. Standard input is read
            in this process, without limits of time and memory.
        ids: the rule for doc_ids; by default they depend on the paths alone.

    Raises:
        DocumentError: a path does not exist, or nothing readable was found.
    """
    ids = ids or FileIds()
    named = [path for path in paths if path != STDIN]
    if STDIN in paths:
        yield from with_prefix(ids.prefix, jsonl.stream(sys.stdin.buffer, "stdin"))
    requests = [Request(str(file), doc_id) for file, doc_id in corpus_files(named, ids)] if named else []
    if reader is not None:
        yield from _read(requests, reader, ids.prefix)
    elif requests:
        with DocumentReader() as own:
            yield from _read(requests, own, ids.prefix)


def _read(requests: Sequence[Request], reader: DocumentReader, prefix: str) -> Iterator[Document | Unreadable]:
    """The documents of files, those of JSON lines with the prefix in front of their own doc_ids."""
    if not prefix:
        yield from reader.read(requests)
        return
    for is_lines, group in groupby(requests, key=lambda request: is_json_lines(request.source)):
        found = reader.read(group)
        yield from with_prefix(prefix, found) if is_lines else found


def with_prefix(prefix: str, documents: Iterator[Document | Unreadable]) -> Iterator[Document | Unreadable]:
    """Put a prefix in front of each doc_id."""
    for one in documents:
        yield replace(one, doc_id=prefix + one.doc_id) if prefix and one.doc_id else one


@dataclass(frozen=True, slots=True)
class Retry:
    """The failures of an index: requests to read again, and the other failures with a reason each."""

    requests: list[Request] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)  # source and reason


def find_failed(index: Path) -> Retry:
    """Look up the documents that could not be indexed.

    Raises:
        IndexMismatch: there is no index.
    """
    if not holds_index(index):
        raise IndexMismatch(f"{index} holds no index; make one: longmatch index {index} PATH...")
    retry = Retry()
    for source, doc_id in stored_failures(index):
        reason = _obstacle(index, source, doc_id)
        if reason:
            retry.left_out.append((source, reason))
        else:
            retry.requests.append(Request(source, doc_id))
    return retry


def _obstacle(index: Path, source: str, doc_id: str) -> str:
    """Why a document cannot be read by itself; empty where it can."""
    file, _, line = source.rpartition(":")
    if line.isdecimal() and is_json_lines(file):
        if file == "stdin" or not Path(file).is_file():
            return "it is a line of a file that is no longer there; index that file again"
        return f"it is a line of {file}; index that file again, its unchanged lines are skipped: " + (
            f"longmatch index {index} {file}"
        )
    if not Path(source).is_file():
        return "it is no longer there; bring it back, or forget it by indexing its folder again with --prune"
    if not doc_id:
        return "its doc_id is not known; index its folder again"
    return ""
