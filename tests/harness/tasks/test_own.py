"""Tasks from outside: by --env, by import path, by entry point; and what is said of wrong ones."""

import json
import math
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from filters.errors import UsageError
from harness.checks.verification import verify
from harness.sweeps.plan import Sweep, pick_tasks
from harness.tasks import own, recipe
from harness.tasks.catalogue import find_task
from harness.tasks.recipe import Recipe, build
from harness.tasks.task import Task
from leaderboard.entries.schema import Place
from leaderboard.entries.schema_v2 import task as task_kind
from leaderboard.report import load
from leaderboard.runs.store import find_cells, read_cell
from leaderboard.statistics.comparison import compare

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "tests" / "outside_package"
CORRIDOR = "outside_env:outside/Corridor-v0"


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(PACKAGE)


def made(*settings: str, env: str = CORRIDOR, **words: Any) -> Task:
    return build(Recipe(env=env, settings=settings, random=0.5, **words), cache=Path("absent"), say=print)


def test_settings_agent_and_references() -> None:
    task = made("learning_rate=3e-4", "num-envs=2", "hidden=32,16", "anneal_lr=false", steps=4096)
    assert (task.agent, task.args.env_id, task.args.total_steps) == ("ppo", CORRIDOR, 4096)
    assert (task.args.learning_rate, task.args.num_envs, task.args.anneal_lr) == (3e-4, 2, False)
    assert task.args.hidden == (32, 16)
    assert len(task.checkpoints) == recipe.EVALUATIONS or len(task.checkpoints) == task.args.rounds
    assert (task.random, math.isnan(task.solved)) == (0.5, True)
    assert made(env="CartPole-v1").solved == 475, "the environment's own threshold"
    assert made(env="CartPole-v1", solved=300.0).solved == 300
    assert made(env="Pendulum-v1").agent == "ppo_continuous"
    assert made(env="MiniGrid-Empty-5x5-v0").agent == "ppo_minigrid"
    small = made('env_kwargs={"length": 4}')
    assert small.args.env_kwargs == {"length": 4}


def test_like_begins_with_another_task_s_settings() -> None:
    like = find_task("smoke-FrozenLake")
    task = made(like="smoke-FrozenLake")
    assert task.args == replace(like.args, env_id=CORRIDOR, env_kwargs={}, eval_every=task.args.eval_every)
    assert task.filter_defaults == like.filter_defaults


def test_the_id_follows_every_setting_and_is_nobody_s_else() -> None:
    ids = [made(*settings).id for settings in ((), ("gamma=0.9",), ("gamma=0.8",), ('env_kwargs={"length": 9}',))]
    assert len(set(ids)) == len(ids)
    assert made("gamma=0.9").id == ids[1]
    assert all(own.is_own(task_id) for task_id in ids)
    assert own.is_own(f"{ids[0]}@envpool")
    assert not any(own.is_own(task.id) for task in map(find_task, ("FrozenLake", "MiniGrid-Empty-8x8")))
    assert list(task_kind("").problems(ids[0], Place())), "no submission to a public suite can name it"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"settings": ("lerning_rate=1",)}, "did you mean 'learning_rate'"),
        ({"settings": ("num_envs=x",)}, "--set num_envs=x: --num-envs: invalid literal for int"),
        ({"settings": ("num_envs",)}, "is not field=value"),
        ({"settings": ("num_envs=0",)}, "num_envs must be at least 1, got 0"),
        ({"settings": ("seed=3",)}, "say --seeds instead"),
        ({"settings": ("env_kwargs=3",)}, "takes a JSON object"),
        ({"settings": ('env_kwargs={"lenth": 3}',)}, "can't make environment"),
        ({"env": "nowhere/Corridor-v0"}, "can't make environment"),
        ({"env": "no_such_module:x/Y-v0"}, "can't make environment"),
        ({"like": "BipedalWalker", "agent": "ppo"}, "is trained with ppo_continuous, not with ppo"),
        ({"like": "Frozen"}, "unknown task 'Frozen'"),
        ({"solved": 0.5}, "what a random policy earns"),
    ],
)
def test_what_is_wrong_is_one_sentence(words: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence) as caught:
        made(*words.pop("settings", ()), **words)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("outside_task:NOTHING", "has no 'NOTHING'"),
        ("outside_task:SUITE", "is no task but tuple"),
        ("no_such:TASK", "can't import 'no_such'"),
    ],
)
def test_an_import_path_that_holds_no_task(name: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        own.find(name)


def test_options_of_env_without_it() -> None:
    with pytest.raises(UsageError, match="--steps is for an environment of your own"):
        pick_tasks(Sweep(steps=3))
    with pytest.raises(UsageError, match="either --task or --env"):
        pick_tasks(Sweep(env=CORRIDOR, task=("FrozenLake",)))


def test_the_random_return_is_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipe, "RANDOM_EPISODES", 40)
    told: list[str] = []
    first = build(Recipe(env=CORRIDOR), cache=tmp_path, say=told.append)
    assert 0.5 < first.random < 1
    assert "a random policy earns" in told[-1]
    monkeypatch.setattr(recipe, "play_randomly", lambda *_: pytest.fail("measured again"))
    assert build(Recipe(env=CORRIDOR), cache=tmp_path, say=told.append).random == first.random
    (damaged,) = tmp_path.iterdir()
    damaged.write_text("{")
    with pytest.raises(pytest.fail.Exception):
        build(Recipe(env=CORRIDOR), cache=tmp_path, say=told.append)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Runs of an environment and of a task from outside in one folder, made by the command in another one."""
    folder = tmp_path_factory.mktemp("own place with blanks")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(PACKAGE), str(ROOT)])}
    printed = ""
    for words in (
        ["--env", CORRIDOR, "--steps", "1024", "--set", "num_envs=4", "eval_episodes=4", "--random", "0.8"],
        ["--task", "outside_task:CORRIDOR"],
    ):
        command = [sys.executable, "-m", "harness.run", *words, "--filter", "iif", "--seeds", "2", "--jobs", "2"]
        ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        printed += ran.stdout
    return folder / "runs", printed


def test_from_the_command_to_the_report(done: tuple[Path, str]) -> None:
    runs, printed = done
    cells = [read_cell(path) for path in find_cells(runs)]
    assert len(cells) == 8
    assert len({cell.task for cell in cells}) == 2
    assert "1 is the best evaluation seen here" in printed
    iif = next(cell for cell in cells if cell.spec == "iif" and cell.task.startswith("Corridor/"))
    assert iif.config["filter_fields"]["fraction"] == 0.5, "the task's own default"
    assert compare(*load(find_cells(runs))).whole
    found = verify(runs)
    assert found.problems == ()


def test_an_edited_setting_is_found(done: tuple[Path, str], tmp_path: Path) -> None:
    runs = Path(shutil.copytree(done[0], tmp_path / "runs"))
    config = next(runs.glob("Corridor-*/iif/seed-0/config.json"))
    config.write_text(json.dumps(json.loads(config.read_text()) | {"task": "Corridor/x00000000"}))
    assert verify(runs).problems
