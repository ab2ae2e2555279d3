"""The rule by which a file gets its doc_id, and which of several documents of one doc_id fails. Reads no file.

- A file that the index holds keeps its doc_id, whichever folder is passed this time.
- The doc_id of any other file is its path below the folder that was passed, or its file name if it was passed itself.
- If two files of a run would get the same doc_id, the paths start at the common parent of all passed folders:
  `2021 2022` gives `2021/x.txt` and `2022/x.txt`.
- A prefix comes in front. It never changes the doc_id of a file that the index holds.

Two files never share a doc_id.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath

from engine.readers import Unreadable
from engine.text.document import Document


@dataclass(frozen=True, slots=True)
class FileIds:
    """The rule for the doc_ids of a run, besides its paths."""

    prefix: str = ""  # of new doc_ids
    index: Path | None = None  # whose files keep their doc_ids; None for no index

    def of(self, roots: Mapping[Path, Path]) -> dict[Path, str]:
        """The doc_id of each file.

        Args:
            roots: absolute paths of files, each with the folder that was passed.
        """
        names = {file: file.relative_to(root).as_posix() for file, root in roots.items()}
        if len(set(names.values())) < len(names):
            shared = os.path.commonpath(set(roots.values()))
            names = {file: file.relative_to(shared).as_posix() for file in roots}
        known = {} if self.index is None else held_files(self.index, roots)
        return {file: known.get(file, self.prefix + name) for file, name in names.items()}


def held_files(index: Path, files: Mapping[Path, object]) -> dict[Path, str]:
    """The doc_ids of the given files that an index holds; empty if there is no index."""
    # Loads numpy, time that a mistyped path should not cost.
    from engine.store.lookup import stored_sources
    from engine.store.manifest import holds_index

    if not holds_index(index):
        return {}
    wanted = {str(file): file for file in files}
    found = {}
    for doc_id, source in stored_sources(index):
        file = wanted.get(source) or wanted.get(str(Path(source).absolute()))
        if file is not None:
            found[file] = doc_id
    return found


def absolute(path: Path) -> Path:
    """The absolute path, the same for all spellings; symbolic links are resolved only in a path with `..`."""
    return path.resolve() if ".." in path.parts else path.absolute()


def is_another_file(stored: str, source: str) -> bool:
    """Whether a document was read from another file than the one indexed under its doc_id.

    Both files must be there: a corpus that was moved is still the same corpus. Lines of JSON and
    documents that were made in memory have no file of their own.
    """
    if stored == source or not (_is_file(stored) and _is_file(source)):
        return False
    return not Path(stored).samefile(source)


def is_gone(stored: str, source: str) -> bool:
    """Whether a document was read from another file, and the file it was indexed from is no longer there."""
    return stored not in ("", source) and _is_file(source) and not _is_file(stored)


def full_source(source: str) -> str:
    """The absolute path of a source that is a file; any other source as it is."""
    return str(absolute(Path(source))) if _is_file(source) else source


def repeated(document: Document) -> Unreadable:
    """The failure of a document whose doc_id came before in the same run."""
    return Unreadable(
        document.source or document.doc_id,
        f"doc_id {document.doc_id!r} came twice in this run; the first one was indexed: give each document its own",
        document.doc_id,
    )


def of_another_file(document: Document, stored: str) -> Unreadable:
    """The failure of a document whose doc_id belongs to the file `stored`."""
    folder = PurePath(document.source.removesuffix(document.doc_id)).name
    return Unreadable(
        document.source,
        f"doc_id {document.doc_id!r} belongs to another file, {stored}, which stays indexed; keep both with "
        f"--id-prefix {folder}/ (Python: id_prefix=), or put this one in its place with --replace (index.update)",
        document.doc_id,
    )


def _is_file(source: str) -> bool:
    """Whether a source is the path of a file; a source may hold what no path can."""
    try:
        return Path(source).is_file()
    except (OSError, ValueError):
        return False
