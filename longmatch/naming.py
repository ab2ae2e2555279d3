"""Whether a string is a text or the name of a file.

- A string that names an existing file is that file, if it has a suffix or a slash: "draft.pdf", "docs/LICENSE".
  "LICENSE" alone is a text.
- A string without blanks that ends in the suffix of a known format, or starts with "/", "./", "../" or "~/", is
  the name of a file too. If there is no such file, that is an error, not a text.
- Any other string is a text.

A program that searches with the input of its users should not let them name files: `Document.from_text(text)` and
`{"text": text}` are always texts, `pathlib.Path` is always a file.
"""

from __future__ import annotations

from pathlib import Path, PurePath

from engine.readers import is_readable

_MOST_CHARS = 1_024  # longer strings are texts
_BEGINNINGS = ("/", "./", "../", "~/")


def named_path(string: str, *, is_folder_named: bool = False) -> Path | None:
    """The path that a string names, whether it exists or not; None for a text.

    Args:
        string: a string that a user passed.
        is_folder_named: whether the name of an existing folder is a path too.
    """
    if not string or len(string) > _MOST_CHARS or not string.isprintable():
        return None
    path = Path(string)
    try:
        is_file, is_folder = path.is_file(), path.is_dir()
    except OSError:  # the system refuses the string: a line of 300 characters is too long for a name
        is_file = is_folder = False
    if is_file and (path.suffix or "/" in string):
        return path
    if is_folder_named and is_folder:
        return path
    return path if _looks_like_name(string) else None


def _looks_like_name(string: str) -> bool:
    has_blank = any(character.isspace() for character in string)
    return not has_blank and (is_readable(PurePath(string)) or string.startswith(_BEGINNINGS))
