"""Kinds of sections: references, acknowledgements, appendices, boilerplate, and body."""

from __future__ import annotations

import pytest

from engine.text.document import Document
from engine.text.section_kinds import SectionKind, section_kinds
from engine.text.segmentation import Heading, Section, divide

BODY = "Pumps move water from the lower to the upper basin, and the valves keep it there until it is wanted. " * 4
CITED = (
    "D. W. K. Andrews. Tests for parameter instability and change. Econometrica, 61:821–856, 1993.\n\n"
    "G. C. Chow. Tests of equality between sets of coefficients. Econometrica, 28:591–605, 1960.\n\n"
    "B. E. Hansen. Testing for instability in linear models. Journal of Policy Modeling, 14:517–533, 1992.\n\n"
) * 3
NAMED = "Bradner, S., Key words for use in documents, BCP 14, RFC 2119, March 1997. " * 4
THANKS = "We thank the reviewers for their careful reading and their many helpful comments on the text. " * 3
RELATED = (
    "Earlier work uses features of words (Smith et al., 2003; Lee et al., 2005). Later systems learn these from data "
    "(Kim et al., 2008), which Jones et al. (2009) apply to trees and Lin et al. (2010) to graphs of sentences. "
) * 6


def document(*parts: tuple[str, str]) -> Document:
    text, headings = "", []
    for heading, body in parts:
        headings.append(Heading(heading, 1, len(text)))
        text += f"{heading}\n\n{body}\n\n"
    return Document("a", "a", text, divide(text, headings))


@pytest.mark.parametrize(
    ("heading", "body", "kind"),
    [
        ("References", CITED, SectionKind.REFERENCES),
        ("7. REFERENCES", CITED, SectionKind.REFERENCES),
        ("Normative References", NAMED, SectionKind.REFERENCES),
        ("Literaturverzeichnis", CITED, SectionKind.REFERENCES),
        ("Références bibliographiques", CITED, SectionKind.REFERENCES),
        ("参考文献", CITED, SectionKind.REFERENCES),
        ("Список литературы", CITED, SectionKind.REFERENCES),
        ("The rest", CITED, SectionKind.REFERENCES),  # detected by its text alone
        ("References", BODY, SectionKind.BODY),  # of a programming language
        ("Notes", RELATED, SectionKind.BODY),
        ("2 Related work", RELATED, SectionKind.BODY),
        ("Acknowledgments", THANKS, SectionKind.ACKNOWLEDGEMENTS),
        ("Danksagung", BODY, SectionKind.ACKNOWLEDGEMENTS),
        ("Acknowledgments", BODY, SectionKind.BODY),  # of packets
        ("Appendix", BODY, SectionKind.APPENDIX),
        ("Appendix B: Proofs", BODY, SectionKind.APPENDIX),
        ("Anhang 2 – Tabellen", BODY, SectionKind.APPENDIX),
        ("Appendix removal by surgery", BODY, SectionKind.BODY),
        ("Copyright", "Copyright (c) 2019 Ann Lee. All rights reserved. " * 6, SectionKind.BOILERPLATE),
        ("License", "The field names the conditions under which a package may be used. " * 5, SectionKind.BODY),
        ("Authors' Addresses", BODY, SectionKind.BOILERPLATE),
    ],
)
def test_a_section_at_the_end_has_a_kind(heading: str, body: str, kind: SectionKind) -> None:
    made = document(("1 Pumps", BODY * 8), (heading, body))
    assert section_kinds(made) == (SectionKind.BODY, kind)


def test_a_copyright_section_in_the_middle_is_body() -> None:
    made = document(
        ("1 Rights", BODY * 4), ("Copyright", "Copyright (c) 2019 marks a work. " * 8), ("3 Uses", BODY * 8)
    )
    assert set(section_kinds(made)) == {SectionKind.BODY}


def test_sections_below_a_heading_are_of_its_kind() -> None:
    text = BODY + CITED
    sections = (
        Section("1 Pumps", ("1 Pumps",), 0, len(BODY)),
        Section("Papers", ("References", "Papers"), len(BODY), len(text)),
    )
    assert section_kinds(Document("a", "a", text, sections))[1] is SectionKind.REFERENCES


def test_lettered_sections_after_the_references_are_the_appendix() -> None:
    made = document(("A First things", BODY), ("References", CITED), ("A Proofs", BODY), ("B.1 Tables", BODY))
    assert section_kinds(made) == (
        SectionKind.BODY, SectionKind.REFERENCES, SectionKind.APPENDIX, SectionKind.APPENDIX,
    )  # fmt: skip


def test_a_conclusion_that_runs_into_citations_stays_body() -> None:
    made = document(("1 Pumps", BODY), ("Conclusion", BODY + CITED))
    assert section_kinds(made)[1] is SectionKind.BODY
