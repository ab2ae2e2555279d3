"""reStructuredText: sections, directives, roles, metadata, and broken markup."""

import itertools
import sys
from pathlib import Path

import pytest

from engine.errors import DocumentError
from engine.readers import rst

BODY = "A sentence of the body that is long enough. " * 6


def text_of(markup: str) -> str:
    return rst.read(markup.encode(), "a", "a.rst").text


def test_sections_and_the_title_come_from_underlines() -> None:
    markup = f".. _top:\n\n=====\nGuide\n=====\n\n{BODY}\n\n"
    markup += f"First *part*\n------------\n\n{BODY}\n\nDeeper\n~~~~~~\n\n{BODY}\n"
    document = rst.read(markup.encode(), "a", "guide.rst")
    assert document.title == "Guide"
    assert [section.path for section in document.sections] == [
        ("Guide",), ("Guide", "First part"), ("Guide", "First part", "Deeper"),
    ]  # fmt: skip
    for section in document.sections:
        assert document.text[section.start : section.stop].startswith(section.heading)


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("*a* **b** ``c_d`` `e <http://x.org>`_ f_ |g| h [1]_ :sup:`2` *open\n\n.. |g| replace:: gee\n.. [1] Note.\n",
         "a b c_d e f gee h [1] 2 *open\n[1] Note."),
        (".. versionadded:: 3.2\n   The *mode* argument.\n\n"
         ".. py:function:: open(path, *args)\n   :module: io\n\n   Opens a ``file``.\n\n   :param path: where\n\n"
         ".. anything::\n\n   A body.\n",
         "3.2 The mode argument.\n\nopen(path, *args)\n\nOpens a file.\nparam path: where\n\nA body."),
        (".. index:: pump\n.. raw:: html\n\n   <hr>\n\n.. meta::\n   :keywords: x\n\n.. contents::\n\n"
         ".. toctree::\n   :maxdepth: 2\n   :caption: Chapters\n\n   intro\n   First steps <first>\n\n"
         ".. only:: html\n\n   Read this.\n\n.. |day| date::\n\n.. a note\n", "Chapters\n\nFirst steps\n\nRead this."),
        (".. code-block:: python\n   :caption: Sum\n\n   def f(*a):\n       return `a`\n\nText::\n\n   *kept*\n",
         "Sum\n\ndef f(*a):\n    return `a`\n\nText:\n\n*kept*"),
        ("- one\n- two\n\n  - deep\n\nterm\n  Said of it.\n\n=====  =====\nA      B\n=====  =====\n1      2\n"
         "=====  =====\n\n| first line\n| second line\n\n-v  verbose\n",
         "- one\n- two\n- deep\n\nterm\n\nSaid of it.\nA | B\n1 | 2\nfirst line\nsecond line\n-v verbose"),
        ("Aim\n\n:param: One *word*.\n:returns:\n\n   First.\n\n   Second.\n\n.. [1] With *marks* in it.\n",
         "Aim\nparam: One word.\n\nreturns:\n\nFirst.\n\nSecond.\n[1] With marks in it."),
        ("A long title\n=====\n\nIt rose.", "A long title\n\nIt rose."),
        *((f"See {role}.", f"See {words}.") for role, words in (
            (":doc:`usage/install`", "usage/install"), (":ref:`the guide <guide-label>`", "the guide"),
            (":py:class:`~package.module.Name`", "Name"), (":func:`!len`", "len"),
            (":variable:`CMAKE_<LANG>`", "CMAKE_<LANG>"), (":no-such-role:`its text`", "its text"),
        )),
    ],
)  # fmt: skip
def test_markup_becomes_words_and_directives_for_programs_are_left_out(markup: str, text: str) -> None:
    assert text_of(markup) == text


def test_a_field_list_or_the_header_of_a_proposal_is_metadata() -> None:
    document = rst.read(f"Pumps\n=====\n\n:Author: A. Lee, B. Roy\n:Date: 4 July 2019\n\n{BODY}".encode(), "a", "a.rst")
    assert document.metadata == {"authors": ["A. Lee", "B. Roy"], "date": "2019-07-04", "year": 2019}
    assert document.text.startswith("Pumps\nAuthor: A. Lee, B. Roy\nDate: 4 July 2019\n\nA sentence")
    document = rst.read(f"PEP: 8\nTitle: Style\nStatus: Active\n\n\nAim\n===\n\n{BODY}".encode(), "a", "a.rst")
    assert (document.title, document.metadata) == ("Style", {"pep": 8, "status": "Active"})
    assert document.text.startswith("PEP: 8\nTitle: Style\nStatus: Active\n\nAim\n\nA sentence")


def test_files_are_not_included(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("hidden words")
    for directive in ("include", "literalinclude", "raw:: html\n   :file", "csv-table:: T\n   :file"):
        assert "hidden" not in text_of(f"Seen.\n\n.. {directive}:: {secret}\n".replace("file::", "file:"))


def test_broken_markup_keeps_its_text_and_substitutions_do_not_grow() -> None:
    markup = "Title\n--\n\n===  ===\na  b\n===\n\n* one\nx\n\n"
    markup += ".. image::\n\n.. figure:: a.png\n   :no-such: 1\n\n   A caption.\n"
    text = text_of(markup)
    assert all(words in text for words in ("Title", "a  b", "one", "x", "A caption."))
    definitions = "\n".join(f".. |a{n}| replace:: |a{n + 1}| |a{n + 1}|" for n in range(60))
    assert len(text_of(f"{definitions}\n.. |a60| replace:: {'x' * 900}\n\n{'|a0| |a58| ' * 500}")) < 30_000


@pytest.mark.parametrize(
    "markup",
    [
        "word " * 3000,
        "x\x0e[1m *y*",
        ".. _t: x\n\n" * 30_000,
        "".join(f"{' ' * depth}deep\n\n" for depth in range(400)),
    ],
)
def test_markup_that_docutils_refuses_is_plain_text(markup: str) -> None:
    assert text_of(markup) == markup


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit", ["T\n---\n\n", ".. _t: http://x\n\n", "*a `b |c ", ".. |t| replace:: x\n\n", ".. foo:: bar\n\n   baz\n\n"]
)
def test_work_grows_with_the_size(unit: str) -> None:
    def calls(size: int) -> int:
        counted = itertools.count()
        markup = "x\n\n" + "\n".join([unit * (2000 // len(unit))] * (size // 2000))
        sys.setprofile(lambda *_: next(counted))
        try:
            text_of(markup)
        finally:
            sys.setprofile(None)
        return next(counted)

    assert calls(40_000) < 12 * calls(4_000)


@pytest.mark.parametrize("markup", ["", " \n", ".. a comment\n"])
def test_a_document_without_text_is_refused(markup: str) -> None:
    with pytest.raises(DocumentError, match="no text"):
        text_of(markup)
