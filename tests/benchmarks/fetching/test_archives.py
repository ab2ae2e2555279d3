from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from benchmarks.fetching.sources import FetchError, read_members

FILES = {"top/a.txt": b"alpha", "top/b.txt.gz": gzip.compress(b"beta"), "top/c.md": b"gamma"}
WANTED = [("top/a.txt", b"alpha"), ("top/b.txt", b"beta")]


def is_text(name: str) -> bool:
    return name.endswith(".txt")


def packed_tar(mode: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload]
        folder = tarfile.TarInfo("top")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for name, data in FILES.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def ar_member(name: str, data: bytes) -> bytes:
    header = f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(data):<10}`\n"
    return header.encode() + data + b"\n" * (len(data) % 2)


@pytest.mark.parametrize(("name", "mode"), [("a.tar.gz", "w:gz"), ("a.tgz", "w:gz"), ("a.tar.xz", "w:xz")])
def test_a_tar_is_read(tmp_path: Path, name: str, mode: str) -> None:
    (tmp_path / name).write_bytes(packed_tar(mode))
    assert list(read_members(tmp_path / name, is_text)) == WANTED


def test_a_zip_is_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name, data in FILES.items():
            archive.writestr(name, data)
    assert list(read_members(tmp_path / "a.zip", is_text)) == WANTED


def test_a_folder_is_read(tmp_path: Path) -> None:
    for name, data in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    assert list(read_members(tmp_path, is_text)) == WANTED


def test_a_debian_package_is_read(tmp_path: Path) -> None:
    parts = [("debian-binary", b"2.0\n"), ("control.tar.xz", b"odd"), ("data.tar.xz", packed_tar("w:xz"))]
    path = tmp_path / "a.deb"
    path.write_bytes(b"!<arch>\n" + b"".join(ar_member(name, data) for name, data in parts))
    assert list(read_members(path, is_text)) == WANTED
    path.write_bytes(b"!<arch>\n" + ar_member("debian-binary", b"2.0\n"))
    with pytest.raises(FetchError, match=r"a.deb holds no data.tar; download it again"):
        list(read_members(path, is_text))
    path.write_bytes(b"<html>")
    with pytest.raises(FetchError, match=r"a.deb is not a Debian package"):
        list(read_members(path, is_text))


@pytest.mark.parametrize("name", ["a.tar.gz", "a.zip"])
def test_a_cut_archive_is_refused_with_the_next_step(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(packed_tar("w:gz")[:60])
    with pytest.raises(FetchError, match=rf"{name} cannot be read as an archive .* download it again"):
        list(read_members(path, is_text))


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.rar").write_bytes(b"x")
    with pytest.raises(FetchError, match=r"neither a folder nor an archive that ends with .tar"):
        list(read_members(tmp_path / "a.rar", is_text))
