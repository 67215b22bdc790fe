"""The page on the demo models lists those that there are, and their options."""

import re
from pathlib import Path

from wsserver.providers.demo import DemoProvider
from wsserver.providers.demo.options import DemoOptions

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/demo-models.md").read_text()


def rows(section: str) -> list[tuple[str, str]]:
    return re.findall(r"^\| `(.*?)` \| (.*) \|$", section, re.MULTILINE)


def test_every_model_is_there_with_what_it_shows() -> None:
    models = PAGE.partition("## Tools")[0]
    assert rows(models) == list(DemoProvider().models().items())


def test_every_option_is_there_and_no_other() -> None:
    options = PAGE.partition("## Options")[2]
    assert [name for name, _ in rows(options)] == list(DemoOptions.__struct_fields__)


def test_the_example_is_a_model() -> None:
    (model,) = re.findall(r"--model (\S+)", PAGE)
    assert DemoProvider().accepts(model)
