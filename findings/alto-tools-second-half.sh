#!/usr/bin/env bash
# alto-tools: of a word divided at the end of a line the first half is printed twice and the second never: "Parlia", "Parliamet again".
#
# Expected: ALTO marks both halves (SUBS_TYPE HypPart1 and HypPart2) and gives the whole word with each (SUBS_CONTENT). The text has the two
# halves, or the whole word once or, as older releases did, twice.
# What happens: the branch for second halves cannot be reached, so the text of the last word is printed again in its place, without a
# blank: "Parlia-/ment met again" is "Parlia" and "Parliamet again", in which neither "Parliament" nor "met" can be found. The hyphen
# is dropped too. Files whose halves are not marked are printed as they are.
# Who meets this: whoever indexes digitised newspapers and books (Chronicling America, Delpher, Europeana): several words per page.
# Versions: alto-tools 0.1.0 (2024, the last one on PyPI). Source: issue 16 and pull request 30 of cneud/alto-tools (never released).
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check alto-tools==0.1.0 2>/dev/null

page() {
    cat <<XML
<?xml version="1.0" encoding="UTF-8"?>
<alto xmlns="http://www.loc.gov/standards/alto/ns-v4#"><Layout><Page ID="page" PHYSICAL_IMG_NR="1"><PrintSpace ID="space">
<TextBlock ID="block">
<TextLine ID="line1"><String ID="s1" CONTENT="The"/><SP/><String ID="s2" CONTENT="Parlia"$1/><HYP CONTENT="-"/></TextLine>
<TextLine ID="line2"><String ID="s3" CONTENT="ment"$2/><SP/><String ID="s4" CONTENT="met"/><SP/><String ID="s5" CONTENT="again"/></TextLine>
</TextBlock>
</PrintSpace></Page></Layout></alto>
XML
}

page ' SUBS_TYPE="HypPart1" SUBS_CONTENT="Parliament"' ' SUBS_TYPE="HypPart2" SUBS_CONTENT="Parliament"' >"$folder/marked.xml"
page '' '' >"$folder/plain.xml"
marked=$("$folder/venv/bin/alto-tools" -t "$folder/marked.xml")
plain=$("$folder/venv/bin/alto-tools" -t "$folder/plain.xml")
"$folder/venv/bin/pip" list 2>/dev/null | grep alto-tools
printf 'halves marked:\n%s\nhalves not marked:\n%s\n' "$marked" "$plain"

[[ $(xargs <<<"$plain") == "The Parlia ment met again" ]]
[[ $(xargs <<<"$marked") == "The Parlia Parliamet again" ]]
