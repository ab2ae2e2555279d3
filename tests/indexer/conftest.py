"""Files for the command line."""

from pathlib import Path

import pytest

TOPICS = ("fox", "dog", "river", "house")


def text_on(topic: str, number: int) -> str:
    body = " ".join(f"the {topic} runs over the old {topic} and jumps through the dark light" for _ in range(9))
    return f"# The {topic} {number}\n\n{body}.\n\n## More on the {topic}\n\n{body} number {number}.\n"


@pytest.fixture(scope="session")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four files on each topic, with its number in their metadata."""
    folder = tmp_path_factory.mktemp("papers")
    for topic in TOPICS:
        (folder / topic).mkdir()
        for number in range(4):
            front = f"---\ntopic: {topic}\nnumber: {number}\n---\n"
            (folder / topic / f"{number}.md").write_text(front + text_on(topic, number))
    return folder
