from __future__ import annotations

import pytest

from benchmarks.fetching.proposals import RECIPE, mask_proposals, parse_proposal

PEP = """\
PEP: 20
Title: The Zen of Python
Status: Active
Type: Informational
Created: 19-Aug-2004

Abstract
========

Long time Pythoneer Tim Peters succinctly channels the BDFL's guiding
principles for Python's design, see :pep:`8` and `the list <https://mail.python.org/>`__.

.. _a target: https://www.python.org
   on two lines

.. code-block:: python
   :class: good

   import this

References
==========

.. [1] Never read.

Two ``words`` here
------------------

Kept, as it has its own heading.
"""
EIP = """\
---
eip: 20
title: Token Standard
status: Final
type: Standards Track
category: ERC
created: 2015-11-19
---

## Abstract

A [standard](https://example.org) interface for tokens<br> in ![a picture](x.png) contracts.

```js
// not a heading
# transfer(to)
```

## Copyright

Waived by a sentence.

### Below it

Left out as well, it stands below.

## `Methods` of *tokens*

One two three.
"""
XEP = """\
<?xml version='1.0' encoding='UTF-8'?>
<!DOCTYPE xep SYSTEM 'xep.dtd' [
  <!ENTITY % ents SYSTEM 'xep.ent'>
%ents;
]>
<xep><header><title>JID &mdash; Escaping</title><abstract>It escapes what is odd.</abstract>
<status>Draft</status><type>Standards Track</type></header>
<section1 topic='Introduction' anchor='intro'><p>As &xep0030; says<note>Never read.</note>, so it is.</p>
<example caption='x'><![CDATA[<iq type='get'/>]]></example>
<section2 topic='IANA Considerations'><p>Nothing to be done here.</p></section2>
<section2 topic='Rules'><ul><li>One rule.</li> <li>Two rules.</li></ul></section2></section1></xep>
"""


def test_a_pep_becomes_sections_without_markup() -> None:
    parsed = parse_proposal("pep20", PEP)
    assert parsed.title == "The Zen of Python"
    assert parsed.meta == {"status": "Active", "type": "Informational", "created": "19-Aug-2004"}
    assert list(parsed.sections) == [
        (
            "Abstract",
            "Long time Pythoneer Tim Peters succinctly channels the BDFL's guiding principles for Python's design, "
            "see PEP 8 and the list.\n\nimport this",
        ),
        ("Two ``words`` here", "Kept, as it has its own heading."),
    ]


def test_an_eip_keeps_code_and_drops_sections_with_all_below_them() -> None:
    parsed = parse_proposal("eip20", EIP)
    assert (parsed.title, parsed.meta["type"]) == ("Token Standard", "ERC")
    assert list(parsed.sections) == [
        ("Abstract", "A standard interface for tokens in contracts.\n\n// not a heading # transfer(to)"),
        ("Methods of tokens", "One two three."),
    ]


def test_a_xep_is_read_without_its_entity_file() -> None:
    parsed = parse_proposal("xep1", XEP)
    assert parsed.title == "JID mdash Escaping"
    assert parsed.meta == {"status": "Draft", "type": "Standards Track"}
    assert list(parsed.sections) == [
        ("Abstract", "It escapes what is odd."),
        ("Introduction", "As XEP-0030 says, so it is.\n\n<iq type='get'/>"),
        ("Rules", "One rule. Two rules."),
    ]
    assert parse_proposal("xep1", "not a document").sections == ()


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("peps-ba4deeb/peps/pep-0008.rst", "pep8"),
        ("EIPs-f767a1e/EIPS/eip-1559.md", "eip1559"),
        ("xeps-3ad7aaa/xep-0030.xml", "xep30"),
        ("xeps-3ad7aaa/inbox/xep-0030.xml", ""),
        ("peps-ba4deeb/peps/pep-0008/figure.png", ""),
    ],
)
def test_files_are_known_by_their_names(name: str, key: str) -> None:
    assert RECIPE.key(name) == key


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("As PEP 8, PEP 257 and PEP 20 say.", "As [CITE] say."),
        ("EIP-155/EIP-158 replaced https://github.com/ethereum/EIPs/issues/155 then.", "[CITE] replaced [CITE] then."),
        ("Python 3.8 keeps 20 steps.", "Python 3.8 keeps 20 steps."),
    ],
)
def test_numbers_of_proposals_are_masked(text: str, masked: str) -> None:
    assert mask_proposals(text) == masked
    assert mask_proposals("XEP-0030 and XEP-0115", lists=False) == "[CITE] and [CITE]"
