"""Bibliographies: the entries of BibTeX, RIS, PubMed, EndNote and Web of Science, with their texts and fields."""

import pytest

from engine.readers import Unreadable, read_bytes
from tests.readers.made import documents_of

_BIBTEX = r"""% Encoding: UTF-8
@string{jw = "Journal of Weirs"}
@article{vane2019,
  title = {Silt in {Tidal} locks: $x^2$}, journal = jw # {, B}, month = jul, year = 2019, keywords = "silt, locks",
  author={given=Ann, family=Vane and King, Jr., Martin and {Weir and Sons, Inc} and M{\"u}ller, J{\'o}zsef and others},
  abstract = {Silt fills 5\% of them, @home{x}.},
}
@book(elm2001, title="Mills \"a\"", author="Elm, E.", year="2001")@online{o, title={A {b}, note={c}}
@comment{x, title={No}}
"""
_RIS = """TY  - CHAP
ID  - vane2019
AU  - Vane, Ann
AU  - King, Martin, Jr.
AU  - Weir and Sons, Inc
TI  - Silt in
Tidal locks
PY  - 2019
DA  - 2019/07/04/
N2  - Silt fills them.
N1  - A note.
KW  - silt
VL  - 5
ER  -

TY  - BOOK
T1  - Mills
"""
_ENDNOTE = """%0 Journal Article
%T Silt in Tidal locks
%A Vane, Ann
%A Okabe, Rin
%D 2019
%X <p>Silt fills H<sub>2</sub>O &amp; them.</p>
%J J Weir

%0 Book
%T Mills
"""
_PUBMED = """
PMID- 31
TI  - Silt in
      Tidal locks
AB  - Silt
      fills them.
FAU - Vane, Ann
AU  - Vane A
CN  - Weir Group
DP  - 2019 Jul 4
AID - 10.1/x [doi]
MH  - silt

PMID- 32
TI  - Mills
"""
_WEB_OF_SCIENCE = """FN Clarivate Analytics Web of Science
VR 1.0
PT J
AU Vane, A
   Okabe, R
AF Vane, Ann
   Okabe, Rin
TI Silt in
   Tidal locks
SO J WEIR
DE silt; locks
ID WATER
AB Silt
   fills them.
PY 2019
UT WOS:1
ER

PT B
TI Mills
ER

EF
"""


@pytest.mark.parametrize(
    ("name", "data", "ids", "text", "fields"),
    [
        *((name, _WEB_OF_SCIENCE, ["WOS:1", "2"], "Silt in Tidal locks Abstract Silt fills them.",
           {"authors": ["Ann Vane", "Rin Okabe"], "journal": "J WEIR", "keywords": ["silt", "locks", "WATER"]})
          for name in ("a.ciw", "savedrecs.txt")),
        ("a.bib", _BIBTEX, ["vane2019", "elm2001", "o"],
         "Silt in Tidal locks: x^2 Abstract Silt fills 5% of them, @homex.",
         {"authors": ["Ann Vane", "Martin King Jr.", "Weir and Sons, Inc", "József Müller"], "date": "2019-07",
          "year": 2019, "journal": "Journal of Weirs, B", "keywords": ["silt", "locks"]}),
        ("a.ris", _RIS, ["vane2019", "2"], "Silt in Tidal locks Abstract Silt fills them. Notes A note.",
         {"authors": ["Ann Vane", "Martin King Jr.", "Weir and Sons, Inc"], "date": "2019-07-04", "VL": "5"}),
        ("a.enw", _ENDNOTE, ["1", "2"], "Silt in Tidal locks Abstract Silt fills H2O & them.",
         {"authors": ["Ann Vane", "Rin Okabe"], "year": 2019, "journal": "J Weir", "type": "Journal Article"}),
        *((name, _PUBMED, ["31", "32"], "Silt in Tidal locks Abstract Silt fills them.",
           {"authors": ["Ann Vane", "Weir Group"], "date": "2019-07-04", "doi": "10.1/x", "keywords": ["silt"]})
          for name in ("a.nbib", "a.txt")),
    ],
)  # fmt: skip
def test_each_entry_is_a_document(name: str, data: str, ids: list[str], text: str, fields: dict[str, object]) -> None:
    found = documents_of(name, data)
    assert [one.doc_id for one in found] == [f"{name}#{own_id}" for own_id in ids]
    assert " ".join(found[0].text.split()) == text
    assert {field: found[0].metadata.get(field) for field in fields} == fields
    assert found[1].text.startswith("Mills")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.bib", "@a{k, title={" + "{" * 50_000),
        ("a.ris", "TY  - A\n" + "AU  - B\n" * 50_000),
        ("a.bib", "@a{k" * 9_000),
    ],
)
def test_damaged_entries_are_refused_in_linear_time(name: str, data: str) -> None:
    assert all(isinstance(one, Unreadable) for one in read_bytes(data.encode(), name))
