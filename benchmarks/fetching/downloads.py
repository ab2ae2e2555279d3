"""Downloads that go on where they stopped, and finding files that were downloaded by hand. Nothing is parsed here."""

from __future__ import annotations

from collections.abc import Callable
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from benchmarks.fetching.archives import SUFFIXES, FetchError
from benchmarks.fetching.recipe import Source

_BLOCK = 1 << 20  # bytes read at once
_TIMEOUT_S = 60.0
_PARTIAL, _RANGE_REFUSED = 206, 416


def download(source: Source, folder: Path, log: Callable[[str], None]) -> Path:
    """Download a file unless the folder has it; a download that was cut off goes on at its last byte.

    Raises:
        FetchError: there is no network, the server refuses, or less than the whole file came.
    """
    path = folder / source.file
    if path.is_file():
        log(f"{path} is there already")
        return path
    folder.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".unfinished")
    log(f"downloading {source.url} to {path}")
    try:
        _continue(source.url, part)
    except (URLError, HTTPException, OSError) as error:
        raise FetchError(f"{source.url} could not be downloaded ({_reason(error)})") from error
    part.replace(path)
    return path


def find_downloads(source: Source, folder: Path) -> list[Path]:
    """Archives and unpacked folders of a source in a folder of downloads, by name."""
    found = {path for pattern in (source.file, *source.patterns) for path in folder.glob(pattern)}
    return sorted(path for path in found if path.is_dir() or path.name.endswith((*SUFFIXES, ".xml")))


def _continue(url: str, part: Path) -> None:
    have = part.stat().st_size if part.is_file() else 0
    headers = {"User-Agent": "longmatch-benchmarks", **({"Range": f"bytes={have}-"} if have else {})}
    try:
        with urlopen(Request(url, headers=headers), timeout=_TIMEOUT_S) as response:
            _save(response, part, is_rest=response.status == _PARTIAL)
    except HTTPError as error:
        if error.code != _RANGE_REFUSED or not have:
            raise
        # What is here is longer than the file: start again.
        part.unlink()
        _continue(url, part)


def _save(response: HTTPResponse, part: Path, *, is_rest: bool) -> None:
    expected = response.headers.get("Content-Length")
    received = 0
    with part.open("ab" if is_rest else "wb") as file:
        while block := response.read(_BLOCK):
            file.write(block)
            received += len(block)
    if expected is not None and received != int(expected):
        raise URLError(f"{received} of {expected} bytes came; run the same command again to go on")


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", None) or error
    return str(reason) or type(error).__name__
