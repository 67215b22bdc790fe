"""Scenarios: every mistake is told with its path and the remedy."""

from pathlib import Path

import pytest

from client_demo.load.quick import quick
from client_demo.load.rules import ScenarioError, check
from client_demo.load.scenario_file import read, shipped

GOOD = """
title = "x"
thresholds = ["ttft_ms.p99 < 500"]
stages = [{ users = 3, seconds = 1 }]
groups = [
  { name = "a", tools = [{ name = "t" }], steps = [
    { do = "open" },
    { do = "tools", delay_seconds = { distribution = "uniform", min = 0, max = 1 } },
    { do = "loop", times = 2, steps = [
      { do = "send", text = "hi" },
      { do = "wait_for", event = "done" },
    ] },
    { do = "drop" }, { do = "resume" },
  ] },
]
"""


def written(folder: Path, text: str) -> str:
    path = folder / "scenario.toml"
    path.write_text(text)
    return str(path)


LONG = "9" * 5000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"title = {LONG}", "is no TOML: an integer is too long"),
        (f"title = {'[' * 3000}{']' * 3000}", "is no TOML: it is nested too deep"),
    ],
    ids=range(2),
)
def test_a_file_that_is_not_for_a_scenario(
    tmp_path: Path, text: str, said: str
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ScenarioError) as caught:
        read(path)
    assert str(caught.value) == f"{path}: {said}"


def test_a_good_one_is_read(tmp_path: Path) -> None:
    assert read(written(tmp_path, GOOD)).scenario.title == "x"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('title = "x"', "", "$: Object missing required field `title`; add `title = …`"),
        ("title", "titles", "unknown field `titles`; known here: title, groups"),
        ("title", "titles", "(did you mean title?)"),
        ("users = 3", "user = 3", "$.stages[0]: Object contains unknown field `user`"),
        ("users = 3", "user = 3", "known here: seconds, users, arrivals_per_second"),
        ("users = 3", "users = -3", "$.stages[0].users: Expected `int` >= 0"),
        ("users = 3,", "", "$.stages[0]: give one of `users` and"),
        ("users = 3", "users = 0", "$.stages: nobody ever comes"),
        ("users = 3", "arrivals_per_second = 3", ""),
        (
            "users = 3, seconds = 1",
            "arrivals_per_second = 3, seconds = 0",
            "$.stages: arrivals need time",
        ),
        ("seconds = 1 }", "seconds = 1 }, { seconds = 1, arrivals_per_second = 1 }",
         "$.stages: some have `users` and some"),
        ('title = "x"', 'title = "x"\nruns = 2', ""),
        ('"loop", times = 2', '"loop", times = 0', "$.groups[0].steps[2].times: Expected"),
        ('"done"', '"dnoe"', "$.groups[0].steps[2].steps[1].event: there is no 'dnoe'"),
        ('"wait_for"', '"wait"', "$.groups[0].steps[2].steps[1].do: Invalid value 'wait'"),
        ('"wait_for"', '"wait_fro"', "(did you mean wait_for?)"),
        ('do = "send", ', "", "$.groups[0].steps[2].steps[0]: Object missing required"),
        (', event = "done"', "", "give exactly one of `event`, `tokens` and `seconds`"),
        ('event = "done"', 'event = "done", tokens = 1', "not event and tokens"),
        (', text = "hi"', "", "steps[0]: give one of `text` and `prompts`"),
        ('text = "hi"', 'prompts = "no"', "there are no prompts 'no'"),
        ('text = "hi"', 'prompts = "twenty"', ""),
        ('{ do = "open" }', '{ do = "think", seconds = 1 }', "`open` first"),
        ('{ do = "resume" }', '{ do = "open" }', "`resume` first"),
        ('{ do = "resume" }', '{ do = "think", seconds = 1 }', "add a `resume`"),
        ('{ do = "drop" }, ', "", "nothing was dropped; `drop` first"),
        ('{ do = "send", text = "hi" }', '{ do = "interrupt" }', "`send` first"),
        ('tools = [{ name = "t" }], ', "", "has no tools; add `[[groups.tools]]`"),
        ("uniform", "unifrm", "seconds.distribution: Invalid value 'unifrm'; one of"),
        ("min = 0", "mni = 0", "known here: distribution, min, max (did you mean min?)"),
        ("min = 0, max = 1", "min = 1, max = 0", "delay_seconds: `min` is above `max`"),
        ("ttft_ms.p99", "ttft.p99", "$.thresholds[0]: there is no figure 'ttft.p99'"),
        ("< 500", "below 500", "is not NAME OPERATOR NUMBER"),
        ("stages = [", "stages = ", "is no TOML"),
    ],
)  # fmt: skip
def test_each_mistake_is_told(
    before: str, after: str, said: str, tmp_path: Path
) -> None:
    assert before in GOOD
    path = written(tmp_path, GOOD.replace(before, after, 1))
    if not said:
        read(path)
        return
    with pytest.raises(ScenarioError) as refused:
        read(path)
    assert said in str(refused.value)
    assert str(refused.value).startswith((path, "there are no prompts"))


def test_groups_have_names_of_their_own(tmp_path: Path) -> None:
    group = '  { name = "a", steps = [{ do = "think", seconds = 1 }] },\n]\n'
    path = written(tmp_path, GOOD.removesuffix("]\n") + group)
    with pytest.raises(ScenarioError, match=r"\$\.groups\[1\]\.name: 'a' stands twice"):
        read(path)


def test_arrivals_run_once(tmp_path: Path) -> None:
    arriving = GOOD.replace("users = 3", "arrivals_per_second = 3")
    path = written(tmp_path, "runs = 2" + arriving)
    with pytest.raises(ScenarioError, match=r"\$\.runs: who arrives runs its script"):
        read(path)


def test_a_name_that_is_nothing_lists_what_there_is() -> None:
    with pytest.raises(ScenarioError, match="shipped are chaos, paced-200, prompts"):
        read("smok")


@pytest.mark.parametrize("name", shipped())
def test_shipped_ones_can_be_run(name: str) -> None:
    plan = read(name)
    assert plan.scenario.description.endswith(".")


def test_the_twenty_prompts_are_twenty() -> None:
    prompts = read("prompts").prompts["twenty"].prompts
    assert len({prompt.name for prompt in prompts}) == len(prompts) == 20
    assert len({prompt.language for prompt in prompts}) == 10
    sizes = [len(prompt.text) for prompt in prompts]
    assert min(sizes) < 10 < 1000 < max(sizes)


def test_flags_make_a_scenario() -> None:
    plan = quick(conversations=5, turns=2, prompt="hi", model=None)
    check(plan)
    assert plan.scenario.stages[0].users == 5
