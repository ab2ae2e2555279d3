"""Files that are parts of other documents, as the chapters of a LaTeX document are."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from engine.readers.reader import included_files


def without_included(files: Collection[Path]) -> list[Path]:
    """Leave out files that another of these files includes, so that no text is indexed twice.

    Of files that include each other, one stays.
    """
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
