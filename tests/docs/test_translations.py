"""The Chinese pages show the same commands and programs as the English ones."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ORIGINALS = ["README.md", "docs/tutorial/first-chat.md"]
CJK = r"[\u4e00-\u9fff]"


def translated(name: str) -> Path:
    return ROOT / name.replace(".md", ".zh.md")


def parts(path: Path) -> tuple[list[str], str]:
    """Returns a page's blocks of code, and its prose."""
    blocks = re.split(
        r"^(```.*?^```)", path.read_text(), flags=re.DOTALL | re.MULTILINE
    )
    return blocks[1::2], "".join(blocks[::2])


def levels(prose: str) -> list[str]:
    return re.findall(r"^#+(?= )", prose, re.MULTILINE)


def test_every_translation_is_of_a_page() -> None:
    made = {str(path.relative_to(ROOT)) for path in ROOT.glob("docs/**/*.zh.md")}
    made |= {path.name for path in ROOT.glob("*.zh.md")}
    assert made == {name.replace(".md", ".zh.md") for name in ORIGINALS}


@pytest.mark.parametrize("name", ORIGINALS)
def test_code_and_headings_are_those_of_the_original(name: str) -> None:
    code, prose = parts(ROOT / name)
    its_code, its_prose = parts(translated(name))
    assert its_code == code
    assert levels(its_prose) == levels(prose)
    rows = [len(re.findall(r"^\|", text, re.MULTILINE)) for text in (prose, its_prose)]
    assert rows[0] == rows[1], "a table has another number of rows"


@pytest.mark.parametrize("name", ORIGINALS)
def test_each_page_leads_to_the_other(name: str) -> None:
    there = translated(name)
    assert f"]({there.name})" in (ROOT / name).read_text()
    assert f"]({Path(name).name})" in there.read_text()


@pytest.mark.parametrize("name", ORIGINALS)
def test_punctuation_between_chinese_words_is_chinese(name: str) -> None:
    _, prose = parts(translated(name))
    prose = re.sub(r"`[^`]*`|\]\([^)]*\)|<[^>]*>", "", prose)
    assert len(re.findall(CJK, prose)) > 500
    assert re.findall(rf"{CJK}[,;:?!]|[,;:?!]{CJK}", prose) == []
