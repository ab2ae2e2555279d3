"""PDFs made in memory whose constructions reportlab does not write."""

import io
from collections.abc import Iterable, Sequence

import pypdfium2

HELVETICA = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"


def pdf_of_shapes(pages: Sequence[Sequence[bytes]], unit: float = 10) -> bytes:
    """Lines of 10 points in a font of shapes without names or a Unicode map, as TeX makes of bitmaps of any unit."""
    used = sorted({code for lines in pages for line in lines for code in line})
    names = b" ".join(b"%d /a%d" % (code, code) for code in used)
    shapes = b" ".join(b"/a%d 4 0 R" % code for code in used)
    font = (
        b"<< /Type /Font /Subtype /Type3 /FontBBox [0 0 1000 1000] /FontMatrix [%f 0 0 %f 0 0] /FirstChar 0 "
        b"/LastChar 255 /Widths [%s] /CharProcs << %s >> /Encoding << /Differences [%s] >> >>"
        % (0.01 / unit, 0.01 / unit, b"500 " * 256, shapes, names)
    )
    contents = [
        b"".join(
            b"BT /F1 %f Tf 1 0 0 1 72 %d Tm <%s> Tj ET\n" % (unit, 720 - 12 * number, line.hex().encode())
            for number, line in enumerate(lines)
        )
        for lines in pages
    ]
    return pdf_of_contents(contents, font, [stream(b"500 0 0 0 400 600 d1 0 0 400 600 re f")])


def pdf_of_contents(
    contents: Iterable[bytes],
    font: bytes = HELVETICA,
    more: Sequence[bytes] = (),
    outline: Sequence[tuple[str, int]] = (),
    fonts: bytes = b"/F1 3 0 R",
    title: str = "",
) -> bytes:
    """Pages of content streams; `more` are objects from number 4 on, `outline` titles and their pages."""
    objects = [b"", b"", font, *more]
    kids = []
    for content in contents:
        objects.append(stream(content))
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R "
            b"/Resources << /Font << %s >> >> >>" % (len(objects), fonts)
        )
        kids.append(len(objects))
    first = len(objects) + 2
    if outline:
        objects.append(b"<< /First %d 0 R /Last %d 0 R >>" % (first, first + len(outline) - 1))
    for number, (name, page) in enumerate(outline, start=1):
        following = b"/Next %d 0 R" % (first + number) if number < len(outline) else b""
        place = (name.encode("cp1252"), first - 1, following, kids[page])
        objects.append(b"<< /Title (%s) /Parent %d 0 R %s /Dest [%d 0 R /Fit] >>" % place)
    objects[0] = b"<< /Type /Catalog /Pages 2 0 R %s >>" % (b"/Outlines %d 0 R" % (first - 1) if outline else b"")
    objects[1] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (b" ".join(b"%d 0 R" % kid for kid in kids), len(kids))
    return _file([*objects, b"<< /Title (%s) >>" % escaped(title).encode("cp1252")])


def escaped(text: str) -> str:
    """The text of a string of PDF."""
    return text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")


def scan_of(data: bytes, *, n_printed: int = 0) -> bytes:
    """The pages of a PDF as pictures of 200 dots per inch, but for the first `n_printed` pages."""
    printed, scan = pypdfium2.PdfDocument(data), pypdfium2.PdfDocument.new()
    scan.import_pages(printed, list(range(n_printed)))
    for page in list(printed)[n_printed:]:
        picture = pypdfium2.PdfImage.new(scan)
        picture.set_bitmap(page.render(scale=200 / 72))
        picture.set_matrix(pypdfium2.PdfMatrix().scale(*page.get_size()))
        sheet = scan.new_page(*page.get_size())
        sheet.insert_obj(picture)
        sheet.gen_content()
    file = io.BytesIO()
    scan.save(file)
    return file.getvalue()


def stream(data: bytes) -> bytes:
    """A stream object."""
    return b"<< /Length %d >>\nstream\n%s\nendstream" % (len(data), data)


def _file(objects: Sequence[bytes]) -> bytes:
    out = io.BytesIO()
    out.write(b"%PDF-1.4\n")
    offsets = []
    for number, body in enumerate(objects, start=1):
        offsets.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    start, size = out.tell(), len(objects) + 1
    entries = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out.write(b"xref\n0 %d\n0000000000 65535 f \n%s" % (size, entries))
    out.write(b"trailer << /Size %d /Root 1 0 R /Info %d 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (size, size - 1, start))
    return out.getvalue()
