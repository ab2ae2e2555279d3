"""Word documents of hand-written parts: notes, equations, numbers, tables, changes."""

import io
import zipfile
from time import process_time

import pytest

from engine.readers.docx import read
from tests.readers.made import document_of, docx_bytes
from tests.readers.zipped import members_of, zip_bytes

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
M = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
TYPES = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PART_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml"


def word_of(body: str, styles: str = "", **parts: str) -> bytes:
    """A document of this body; `parts` are the contents of footnotes, endnotes, comments or numbering."""
    source = zipfile.ZipFile(io.BytesIO(docx_bytes([])))
    pictures = {name: source.read(name) for name in source.namelist() if not name.endswith((".xml", ".rels"))}
    files = {name: source.read(name).decode() for name in source.namelist() if name not in pictures}
    files["word/document.xml"] = f"<w:document {W} {M}><w:body>{body}</w:body></w:document>"
    files["word/styles.xml"] = files["word/styles.xml"].replace("</w:styles>", f"{styles}</w:styles>")
    for name, content in parts.items():
        if f"word/{name}.xml" not in files:
            relation = f'<Relationship Id="own-{name}" Type="{TYPES}/{name}" Target="{name}.xml"/>'
            override = f'<Override PartName="/word/{name}.xml" ContentType="{PART_TYPE}.{name}+xml"/>'
            rels = "word/_rels/document.xml.rels"
            files[rels] = files[rels].replace("</Relationships>", f"{relation}</Relationships>")
            files["[Content_Types].xml"] = files["[Content_Types].xml"].replace("</Types>", f"{override}</Types>")
        files[f"word/{name}.xml"] = f"<w:{name} {W} {M}>{content}</w:{name}>"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in {**pictures, **files}.items():
            archive.writestr(name, text)
    return out.getvalue()


def text_of(body: str, styles: str = "", **parts: str) -> str:
    return read(word_of(body, styles, **parts), "a", "a.docx").text


def run(text: str) -> str:
    return f"<w:r><w:t>{text}</w:t></w:r>"


def paragraph(content: str, style: str = "", numbers: str = "") -> str:
    style = f'<w:pStyle w:val="{style}"/>' if style else ""
    return f"<w:p><w:pPr>{style}{numbers}</w:pPr>{content}</w:p>"


def numbered(num_id: int, level: int) -> str:
    return f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{num_id}"/></w:numPr>'


def note(kind: str, number: int, text: str) -> str:
    return f'<w:{kind} w:id="{number}">{paragraph(f"<w:r><w:{kind}Ref/></w:r>{run(text)}")}</w:{kind}>'


def test_notes_follow_the_paragraph_that_refers_to_them() -> None:
    first, second, last = (f'<w:r><w:{kind}Reference w:id="2"/></w:r>' for kind in ("footnote", "endnote", "comment"))
    body = paragraph(run("One") + first + run(" goes on") + second) + paragraph(run("Two") + first + last)
    separator = f'<w:footnote w:type="separator" w:id="0">{paragraph(run("no"))}</w:footnote>'
    text = text_of(
        body,
        footnotes=separator + note("footnote", 2, "Smith v. Jones") + note("footnote", 3, "of no use"),
        endnotes=note("endnote", 2, "An end note"),
        comments=note("comment", 2, "A comment"),
    )
    assert text == "One goes on\n\nSmith v. Jones\n\nAn end note\n\nTwo"


def test_notes_of_tables_and_headings_follow_them_and_those_of_deleted_text_are_left_out() -> None:
    reference = '<w:r><w:footnoteReference w:id="{}"/></w:r>'
    table = f"<w:tbl><w:tr><w:tc>{paragraph(run('cell') + reference.format(2))}</w:tc></w:tr></w:tbl>"
    heading = paragraph(run("Heading") + reference.format(3), "Heading1")
    deleted = paragraph(f"{run('end')}<w:del>{reference.format(4)}</w:del>")
    notes = "".join(note("footnote", number, f"note {number}") for number in (2, 3, 4))
    assert text_of(table + heading + deleted, footnotes=notes) == "cell\n\nnote 2\n\nHeading\n\nnote 3\n\nend"


def math(content: str) -> str:
    return f"<m:oMath>{content}</m:oMath>"


def letter(text: str) -> str:
    return f"<m:r><m:rPr/><w:rPr/><m:t>{text}</m:t></m:r>"


def parts(**of: str) -> str:
    return "".join(f"<m:{name}>{content}</m:{name}>" for name, content in of.items())


A, B, AB = letter("a"), letter("b"), letter("a+b")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("equation", "text"),
    [
        (f"{A}{letter('=')}{B}", "a=b"),
        (f"<m:f><m:fPr/>{parts(num=AB, den=A)}</m:f>", "(a+b)/a"),
        (f"<m:sSup>{parts(e=A, sup=letter('2'))}</m:sSup>", "a^2"),
        (f"<m:sSub>{parts(e=A, sub=AB)}</m:sSub>", "a_(a+b)"),
        (f"<m:sSubSup>{parts(e=A, sub=letter('i'), sup=B)}</m:sSubSup>", "a_i^b"),
        (f"<m:sPre>{parts(sub=B, sup=letter('2'), e=A)}</m:sPre>", "_b^2a"),
        (f"<m:rad>{parts(deg='', e=AB)}</m:rad>", "√(a+b)"),
        (f"<m:rad>{parts(deg=letter('3'), e=A)}</m:rad>", "3√(a)"),
        (
            f'<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr>{parts(sub=letter("i=1"), sup=letter("n"), e=A)}</m:nary>',
            "∑_(i=1)^n a",
        ),
        (f"<m:nary>{parts(e=A)}</m:nary>", "∫ a"),
        (f"<m:d>{parts(e=A)}</m:d>", "(a)"),
        (f'<m:d><m:dPr><m:begChr m:val="["/><m:endChr m:val=""/></m:dPr>{parts(e=A)}</m:d>', "[a"),
        (f"<m:func>{parts(fName=letter('sin'), e=A)}</m:func>", "sin a"),
        (f"<m:limLow>{parts(e=letter('lim'), lim=letter('x→0'))}</m:limLow>", "lim_(x→0)"),
        (f"<m:m><m:mr>{parts(e=A)}{parts(e=B)}</m:mr><m:mr>{parts(e=B)}{parts(e=A)}</m:mr></m:m>", "a, b; b, a"),
        (f"<m:acc>{parts(e=A)}</m:acc>", "a\u0302"),
        (f"<m:box>{parts(e=A)}</m:box><w:del>{B}</w:del>", "a"),
        (f"{'<m:box><m:e>' * 90}{AB}{'</m:e></m:box>' * 90}", "a+b"),
    ],
)
def test_equations_are_text_on_a_line(equation: str, text: str) -> None:
    assert text_of(paragraph(f"{run('an equation: ')}{math(equation)}{run('.')}")) == f"an equation: {text}."
    assert text_of(f"<m:oMathPara>{math(equation)}</m:oMathPara>{paragraph(run('End.'))}") == f"{text}\n\nEnd."


def level(number: int, text: str, form: str = "decimal", style: str = "") -> str:
    style = f'<w:pStyle w:val="{style}"/>' if style else ""
    rules = f'<w:start w:val="1"/><w:numFmt w:val="{form}"/>{style}<w:lvlText w:val="{text}"/>'
    return f'<w:lvl w:ilvl="{number}">{rules}</w:lvl>'


RULES = (
    f'<w:abstractNum w:abstractNumId="1">{level(0, "%1.", style="Heading1")}{level(1, "%1.%2", style="Heading2")}'
    f"{level(2, '(%3)', 'lowerRoman')}</w:abstractNum>"
    f'<w:abstractNum w:abstractNumId="2">{level(0, "%1)", "upperLetter")}{level(1, "o", "bullet")}</w:abstractNum>'
    '<w:num w:numId="1"><w:abstractNumId w:val="1"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="2"/></w:num>'
    '<w:num w:numId="3"><w:abstractNumId w:val="2"/>'
    '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/></w:lvlOverride></w:num>'
)


def test_lists_are_numbered_as_word_numbers_them() -> None:
    items = [(2, 0), (2, 0), (2, 1), (2, 0), (3, 0), (1, 2), (1, 2), (0, 0), (9, 0)]
    body = "".join(paragraph(run("x"), numbers=numbered(*item)) for item in items)
    assert text_of(body, numbering=RULES) == "A) x\nB) x\n- x\nC) x\nA) x\n(i) x\n(ii) x\n\nx\n\n- x"


@pytest.mark.parametrize(("restart", "last"), [("", "1."), ('<w:lvlRestart w:val="0"/>', "2.")])
def test_a_level_can_go_on_below_the_next_number(restart: str, last: str) -> None:
    below = level(1, "%2.").replace("<w:start", f"{restart}<w:start")
    rules = (
        f'<w:abstractNum w:abstractNumId="1">{level(0, "%1.", "upperRoman")}{below}</w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="1"/></w:num>'
    )
    body = "".join(paragraph(run("x"), numbers=numbered(1, place)) for place in (0, 1, 0, 1))
    assert text_of(body, numbering=rules) == f"I. x\n1. x\nII. x\n{last} x"


def test_labels_of_a_diagram_are_lines() -> None:
    words = "".join(f"<a:p><a:r><a:t>{word} </a:t></a:r><a:r><a:t>gate</a:t></a:r></a:p>" for word in ("Oak", "Elm"))
    points = (
        f'<d:pt xmlns:d="d" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><d:t>{words}</d:t></d:pt>'
    )
    drawing = '<w:r><w:drawing><d:relIds xmlns:d="d" d:dm="own-data1"/></w:drawing></w:r>'
    assert text_of(paragraph(run("Gates") + drawing), data1=points) == "Gates\n\nOak gate\nElm gate"


def test_headings_keep_their_numbers() -> None:
    own = [(1, 0, "One"), (1, 1, "Sub"), (1, 1, "Sub"), (1, 0, "Two"), (1, 1, "Sub")]
    body = "".join(
        paragraph(run(text), f"Heading{place + 1}", numbered(number, place)) + paragraph(run("Words. " * 40))
        for number, place, text in own
    )
    document = read(word_of(body, numbering=RULES), "a", "a.docx")
    assert [section.heading for section in document.sections] == ["1. One", "1.1 Sub", "1.2 Sub", "2. Two", "2.1 Sub"]
    for section in document.sections:
        assert document.text[section.start :].startswith(section.heading)


def test_a_style_brings_its_numbers() -> None:
    style = '<w:style w:type="paragraph" w:styleId="{}">{}</w:style>'
    rules = '<w:name w:val="own"/><w:pPr><w:numPr><w:numId w:val="2"/></w:numPr></w:pPr>'
    styles = style.format("Own", rules) + style.format("Own2", '<w:basedOn w:val="Own"/>')
    body = paragraph(run("x"), "Own") + paragraph(run("y"), "Own2")
    assert text_of(
        body + paragraph("", "Own") + paragraph(run("z"), "Own", numbered(0, 0)), styles, numbering=RULES
    ) == ("A) x\nB) y\n\nz")


def test_a_table_in_a_cell_is_read_once_and_deleted_rows_and_moved_text_are_not() -> None:
    inner = f"<w:tbl><w:tr><w:tc>{paragraph(run('b'))}</w:tc><w:tc>{paragraph(run('c'))}</w:tc></w:tr></w:tbl>"
    outer = f"<w:tbl><w:tr><w:tc>{paragraph(run('a'))}{inner}</w:tc><w:tc>{paragraph(run('d'))}</w:tc></w:tr></w:tbl>"
    assert text_of(outer) == "a b c | d"
    deleted = f"<w:tr><w:trPr><w:del/></w:trPr><w:tc>{paragraph(run('old'))}</w:tc></w:tr>"
    moved = f"<w:moveFrom>{run('from')}</w:moveFrom><w:moveTo>{run('to')}</w:moveTo>"
    table = f"<w:tbl>{deleted}<w:tr><w:tc>{paragraph(moved)}</w:tc></w:tr></w:tbl>"
    assert text_of(table) == "to"


def many_styles(number: int) -> tuple[str, str]:
    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="S{place}"><w:basedOn w:val="S{(place + 1) % number}"/></w:style>'
        for place in range(number)
    )
    return "".join(paragraph(run("x"), f"S{place}") for place in range(number)), styles


def nested_tables(number: int) -> tuple[str, str]:
    cells = f"<w:tc>{paragraph(run('c'))}</w:tc>" * (number // 80)
    body = paragraph(run("deep"))
    for _ in range(80):
        body = f"<w:tbl><w:tr><w:tc>{body}{paragraph('')}</w:tc>{cells}</w:tr></w:tbl>"
    return body, ""


@pytest.mark.slow
@pytest.mark.parametrize("made", [many_styles, nested_tables])
def test_time_is_linear(made: object) -> None:
    assert callable(made)
    seconds = []
    for number in (800, 8_000):
        data = word_of(*made(number))
        started = process_time()
        read(data, "a", "a.docx")
        seconds.append(process_time() - started)
    assert seconds[1] < 1 + 25 * seconds[0]


def _field(code: str, data: str = "") -> str:
    marks = (f'<w:r><w:fldChar w:fldCharType="{kind}">{{}}</w:fldChar></w:r>' for kind in ("begin", "end"))
    begin, end = marks
    return f"{begin.format(data)}<w:r><w:instrText>{code}</w:instrText></w:r>{end.format('')}"


_DRAWN = '<a:txBody xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main">{}</a:txBody>'.format(
    "".join(f"<a:p><a:r><a:t>{word}</a:t></a:r><a:r><a:t>s</a:t></a:r></a:p>" for word in ("gate", "lock"))
)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (_field(r'EQ \* jc2 \* "Font:Mincho" \o\ad(\s\up 9(すいもん),水門)'), "水門"),
        (_field(r"EQ \f(1,2) + \r(3,x) + a\s\up8(2)"), "1/2 + √3, x + a^2"),
        (_field("MACROBUTTON NoMacro [Name of the keeper]"), "[Name of the keeper]"),
        (_field(r'SYMBOL 97 \f "Symbol" \s 10') + _field("SYMBOL 0x00E9"), "αé"),
        (_field('XE "weir"') + run("oak"), "oak"),
        *((_field("FORMCHECKBOX", f"<w:ffData><w:checkBox>{state}</w:checkBox></w:ffData>"), sign) for state, sign in (
            ("<w:default w:val='1'/>", "☒"), ("<w:default w:val='1'/><w:checked w:val='0'/>", "☐"))),
        (_field("FORMDROPDOWN", "<w:ffData><w:ddList><w:result w:val='1'/><w:listEntry w:val='Oak'/><w:listEntry "
                "w:val='Elm'/></w:ddList></w:ffData>"), "Elm"),
        ('<w:r><w:pict><v:textpath xmlns:v="v" string="Kestrel Quay"/></w:pict></w:r>', "Kestrel Quay"),
        (f"{run('oak')}<w:r><w:drawing>{_DRAWN}</w:drawing></w:r>{run('s')}", "oaks\n\ngates\n\nlocks"),
    ],
)  # fmt: skip
def test_fields_and_drawings_show_words(content: str, text: str) -> None:
    assert text_of(paragraph(content)) == text


@pytest.mark.parametrize(
    ("form", "labels"),
    [
        ("ordinal", "1st 2nd 3rd"), ("decimalEnclosedCircle", "① ② ③"), ("russianUpper", "А Б В"),
        ("chineseCountingThousand", "一 二 三"), ("ganada", "가 나 다"), ("unknown", "1 2 3"),
    ],
)  # fmt: skip
def test_numbers_of_other_scripts(form: str, labels: str) -> None:
    numbering = (
        f'<w:abstractNum w:abstractNumId="91"><w:lvl w:ilvl="0"><w:numFmt w:val="{form}"/><w:lvlText w:val="%1"/>'
        '</w:lvl></w:abstractNum><w:num w:numId="9"><w:abstractNumId w:val="91"/></w:num>'
    )
    items = [paragraph(run("oak"), numbers=numbered(9, 0))] * 3
    assert text_of("".join(items), numbering=numbering) == "\n".join(f"{label} oak" for label in labels.split())


def _flat(members: dict[str, bytes]) -> bytes:
    parts = "".join(
        f'<pkg:part pkg:name="/{name}"><pkg:xmlData>{data[data.find(b"?>") + 2 if b"?>" in data else 0 :].decode()}'
        "</pkg:xmlData></pkg:part>"
        for name, data in members.items()
        if name.endswith((".xml", ".rels"))
    )
    package = "http://schemas.microsoft.com/office/2006/xmlPackage"
    return f'<pkg:package xmlns:pkg="{package}">{parts}</pkg:package>'.encode()


@pytest.mark.parametrize("kind", ["docx", "dotm", "xml", "backslashes", "case"])
def test_a_package_in_other_forms(kind: str) -> None:
    data = word_of(
        paragraph(run("oak") + '<w:r><w:footnoteReference w:id="2"/></w:r>'), footnotes=note("footnote", 2, "elm")
    )
    members = {
        name: content if isinstance(content, bytes) else content.encode() for name, content in members_of(data).items()
    }
    data = {
        "xml": _flat(members),
        "backslashes": zip_bytes({name.replace("/", "\\"): content for name, content in members.items()}),
        "case": zip_bytes({name.upper(): content for name, content in members.items()}),
    }.get(kind, data)
    document = document_of(f"a.{kind if kind in ('dotm', 'xml') else 'docx'}", data)
    assert document.text == "oak\n\nelm"
