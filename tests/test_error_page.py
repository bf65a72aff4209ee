"""docs/errors.md has what is really said to those who make the mistake."""

import re
from pathlib import Path

import pytest

from tests.mistakes import MISTAKES

PAGE = (Path(__file__).parent.parent / "docs" / "errors.md").read_text()
SAID = dict(re.findall(r"^### (.+)\n\n```text\n(.+)\n```", PAGE, flags=re.MULTILINE))


def test_every_message_on_the_page_is_tried():
    assert set(SAID) == set(MISTAKES)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_page_has_the_words(mistake, tmp_path):
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the words are what is compared
        MISTAKES[mistake](tmp_path)
    assert str(caught.value).replace(f"{tmp_path}/", "") == SAID[mistake]
