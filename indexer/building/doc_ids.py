"""The rule by which a file gets its doc_id. Reads no file.

- A file that the index holds keeps its doc_id, whichever folder is named this time.
- Any other file is named by its path below the named folder; a file that was named itself, by its file name.
- If two files of a run would get the same doc_id, the paths start at the folder that holds all named folders:
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
    """What the doc_ids of a run depend on, besides its paths."""

    prefix: str = ""  # of new doc_ids
    index: Path | None = None  # whose files keep their doc_ids; None for no index

    def of(self, roots: Mapping[Path, Path]) -> dict[Path, str]:
        """The doc_id of each file.

        Args:
            roots: absolute paths of files, each with the folder that was named.
        """
        names = {file: file.relative_to(root).as_posix() for file, root in roots.items()}
        if len(set(names.values())) < len(names):
            shared = os.path.commonpath(set(roots.values()))
            names = {file: file.relative_to(shared).as_posix() for file in roots}
        known = {} if self.index is None else held_files(self.index, roots)
        return {file: known.get(file, self.prefix + name) for file, name in names.items()}


def held_files(index: Path, files: Mapping[Path, object]) -> dict[Path, str]:
    """The doc_ids of those of the given files that an index holds; empty where there is no index.

    An index of an earlier version holds paths as they were typed; they count from the current folder.
    """
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
    """A path from the root folder, the same for all ways to write it; symbolic links stay where that is possible."""
    return path.resolve() if ".." in path.parts else path.absolute()
