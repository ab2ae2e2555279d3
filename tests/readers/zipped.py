"""Zip files, tar archives and EPUBs made in memory."""

import io
import tarfile
import zipfile
from collections.abc import Mapping

_CONTAINER = """<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
<rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>"""
_PACKAGE = """<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>
{fields}</metadata><manifest>{items}</manifest><spine>{spine}</spine>{guide}</package>"""
_FIELDS = """<dc:title>On Pumps</dc:title><dc:creator>Ann Lee</dc:creator><dc:creator>Ben Roy</dc:creator>
<dc:date>2015-03-03</dc:date><dc:identifier>urn:isbn:1</dc:identifier><dc:language>en</dc:language>"""


def zip_bytes(members: Mapping[str, str | bytes]) -> bytes:
    """A zip file of these members."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def members_of(data: bytes) -> dict[str, str | bytes]:
    """The members of a zip file, and their bytes."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def tar_of(members: Mapping[str, bytes | tarfile.TarInfo], form: int = tarfile.GNU_FORMAT) -> bytes:
    """A tar archive of these members; a header stands for one without content, such as a link."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for name, content in members.items():
            header = tarfile.TarInfo(name) if isinstance(content, bytes) else content
            header.size = len(content) if isinstance(content, bytes) else header.size
            archive.addfile(header, io.BytesIO(content) if isinstance(content, bytes) else None)
    return out.getvalue()


def epub_bytes(
    pages: Mapping[str, str], spine: list[str] | None = None, fields: str = _FIELDS, guide: str = "", **more: str
) -> bytes:
    """An EPUB of pages (name: body); `spine` gives their order, `more` further members by name."""
    items = "".join(
        f'<item id="{name}" href="{name}" media-type="application/xhtml+xml" '
        f'properties="{"nav" if name.startswith("nav") else ""}"/>'
        for name in pages
    )
    references = "".join(f'<itemref idref="{name}"/>' for name in spine or list(pages))
    package = _PACKAGE.format(items=items, spine=references, fields=fields, guide=guide)
    bodies = {f"OEBPS/{name}": f"<html><body>{body}</body></html>" for name, body in pages.items()}
    return zip_bytes({"META-INF/container.xml": _CONTAINER, "OEBPS/book.opf": package, **bodies, **more})
