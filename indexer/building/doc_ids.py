"""The rule by which a file gets its doc_id. Reads no file.

- A file that the index holds keeps its doc_id, whichever folder is passed this time.
- The doc_id of any other file is its path below the folder that was passed, or its file name if it was passed itself.
- If two files of a run would get the same doc_id, the paths start at the common parent of all passed folders:
  `2021 2022` gives `2021/x.txt` and `2022/x.txt`.
- A prefix comes in front. It never changes the doc_id of a file that the index holds.

Two files never share a doc_id: see `indexer.building.collisions`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


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
    # Loads SQLAlchemy: half a second that a mistyped path should not cost.
    from engine.store.manifest import holds_index
    from engine.store.presence import stored_sources

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
