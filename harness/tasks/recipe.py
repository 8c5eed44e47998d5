"""How does an environment from outside become a task? Its agent, settings and references, from a line of words."""

import contextlib
import hashlib
import io
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, cast

import gymnasium as gym
import numpy as np
import tyro
from numpy.typing import NDArray

from algos.envs.evaluate import make_evaluator
from algos.envs.single import make_env
from filters.errors import UsageError
from filters.registry import suggest
from harness.tasks.own import AGENTS, find, named
from harness.tasks.task import AgentArgs, Task
from leaderboard.runs.store import write_json

AgentName = Literal["auto", "ppo", "ppo_continuous", "ppo_minigrid", "ppo_atari"]
ELSEWHERE = {"seed": "--seeds", "device": "--device", "compile": "--compile", "env_backend": "--env-backend"}
"""settings that options of their own are for"""
RANDOM_EPISODES, RANDOM_STEPS = 200, 400_000
"""episodes behind a measured random return, fewer where they would take more steps than that; fixed, so that the same
environment has the same return"""
EVALUATIONS = 25
"""of a run, unless the settings say how often to evaluate"""
LARGEST_GRID = 32
"""side of an image that is taken for a symbolic grid"""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Recipe:
    """An environment and what to train on it with."""

    env: str
    """a Gymnasium id, with the module that registers it before a colon where it is not Gymnasium's own"""
    agent: AgentName = "auto"
    like: str = ""
    """a task whose settings to begin with"""
    settings: tuple[str, ...] = ()
    """field=value"""
    steps: int = 0
    random: float | None = None
    solved: float | None = None


def build(recipe: Recipe, *, cache: Path, say: Say) -> Task:
    """The task of an environment.

    Args:
        recipe: the environment and the settings.
        cache: folder where a measured random return is kept.
        say: is told of the progress of the measurement.

    Raises:
        UsageError: the environment can't be made, no agent takes its spaces, or a setting is wrong.
    """
    like = find(recipe.like) if recipe.like else None
    kwargs = _env_kwargs(recipe, like)
    env = make_env(recipe.env, kwargs)
    threshold = env.spec.reward_threshold if env.spec else None
    agent = pick_agent(recipe, like, env)
    env.close()
    args = _configured(recipe, agent, like, kwargs)
    solved = threshold if recipe.solved is None else recipe.solved
    stem = re.sub(r"[^A-Za-z0-9.-]+", "-", recipe.env.rpartition(":")[2]).strip("-.")[:60] or "env"
    task = Task(
        id=stem,
        about=f"{recipe.env} with {agent}",
        args=args,
        random=math.nan,
        solved=math.nan if solved is None else float(solved),
        returns=(-math.inf, math.inf),
        filter_defaults=like.filter_defaults if like else {},
        apply=like.apply if like else None,
    )
    random = measured_random(task, cache, say) if recipe.random is None else recipe.random
    if solved is not None and float(solved) == random:
        raise UsageError(f"--solved {solved} is what a random policy earns on {recipe.env}; say what a good one earns")
    return named(replace(task, random=random), recipe.env)


def pick_agent(recipe: Recipe, like: Task | None, env: gym.Env[Any, Any]) -> str:
    """The agent for an environment's spaces, unless one is said; raises UsageError if there is none."""
    if recipe.agent != "auto":
        return recipe.agent
    if like is not None:
        return like.agent
    obs, actions = env.observation_space.shape or (), env.action_space
    if isinstance(actions, gym.spaces.Box) and np.issubdtype(actions.dtype, np.floating) and len(obs) == 1:
        return "ppo_continuous"
    if len(obs) == 1:
        return "ppo"
    if len(obs) == 3 and obs == (4, 84, 84):
        return "ppo_atari"
    if len(obs) == 3 and max(obs[:2]) <= LARGEST_GRID:
        return "ppo_minigrid"
    raise UsageError(
        f"environment {recipe.env!r} observes {env.observation_space} and acts by {actions}: no agent here is made for "
        "that; ppo takes vectors, ppo_continuous continuous actions, ppo_minigrid small grids, ppo_atari 84×84 frames"
    )


def _env_kwargs(recipe: Recipe, like: Task | None) -> Mapping[str, Any]:
    said = [value for name, value in map(_split, recipe.settings) if name == "env_kwargs"]
    if not said:
        return like.args.env_kwargs if like and like.args.env_id == recipe.env else {}
    try:
        kwargs = json.loads(said[-1])
    except ValueError:
        kwargs = None
    if not isinstance(kwargs, dict):
        raise UsageError(f'--set env_kwargs takes a JSON object such as \'{{"map_name": "8x8"}}\', got {said[-1]!r}')
    return cast(dict[str, Any], kwargs)


def _split(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"--set {text!r} is not field=value; write for example --set learning_rate=3e-4")
    return name.strip().replace("-", "_"), value.strip()


def _configured(recipe: Recipe, agent: str, like: Task | None, kwargs: Mapping[str, Any]) -> AgentArgs:
    cls = AGENTS[agent]
    if like is not None and like.agent != agent:
        raise UsageError(f"--like {recipe.like} is trained with {like.agent}, not with {agent}; choose another task")
    base = replace(like.args if like else cls(), env_id=recipe.env, env_kwargs=dict(kwargs))
    known = [field.name for field in fields(cls)]
    words: list[str] = []
    settings = [(name, value) for name, value in map(_split, recipe.settings) if name != "env_kwargs"]
    for name, value in settings:
        if name in ELSEWHERE:
            raise UsageError(f"--set {name}: say {ELSEWHERE[name]} instead")
        if name not in known or name == "env_id":
            raise UsageError(f"algos.{agent} has no setting {name!r}; {suggest(name, known)}")
        words += _option(name, value, getattr(base, name))
    if recipe.steps:
        base = replace(base, total_steps=recipe.steps)
    args = _parsed(cls, words, base, recipe.settings)
    if "eval_every" not in dict(settings):
        args = replace(args, eval_every=max(1, args.rounds // EVALUATIONS))
    return args


def _option(name: str, value: str, today: Any) -> list[str]:
    flag = name.replace("_", "-")
    if isinstance(today, bool) and value.lower() in ("true", "false"):
        return [f"--{flag}" if value.lower() == "true" else f"--no-{flag}"]
    if isinstance(today, tuple):
        return [f"--{flag}", *(value.replace(",", " ").split())]
    return [f"--{flag}", value]


def _parsed(cls: type[AgentArgs], words: list[str], base: AgentArgs, said: Iterable[str]) -> AgentArgs:
    told = io.StringIO()
    try:
        with contextlib.redirect_stderr(told), contextlib.redirect_stdout(told):
            return tyro.cli(cls, args=words, default=base)
    except SystemExit as error:
        why = re.sub(r"[^\x20-\x7e]+|-{3,}", " ", told.getvalue()).partition("rror parsing ")[2]
        why = " ".join(why.partition(" Argument helptext")[0].split())[:200]
        raise UsageError(f"--set {' '.join(said)}: {why or 'a value is of the wrong kind'}") from error


def measured_random(task: Task, cache: Path, say: Say) -> float:
    """Mean return of a uniformly random policy, measured once and kept in a file below `cache`."""
    args = task.args
    key = hashlib.sha256(json.dumps([args.env_id, args.env_kwargs], sort_keys=True, default=str).encode()).hexdigest()
    file = cache / f"random-{key[:16]}.json"
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        known = float(json.loads(file.read_text(encoding="utf-8"))["random"])
        if math.isfinite(known):
            return known
    value, episodes = play_randomly(args.env_id, args.env_kwargs, say)
    with contextlib.suppress(OSError):  # an output folder that can't be written to is told of later
        file.parent.mkdir(parents=True, exist_ok=True)
        write_json(file, {"env_id": args.env_id, "env_kwargs": args.env_kwargs, "random": value, "episodes": episodes})
    return value


def play_randomly(env_id: str, kwargs: Mapping[str, Any], say: Say) -> tuple[float, int]:
    """Mean return of a uniformly random policy, and of how many episodes; the same at every call."""
    env = make_env(env_id, kwargs)
    space = env.action_space
    env.close()
    space.seed(0)

    def act(obs: NDArray[Any]) -> NDArray[Any]:
        return np.stack([space.sample() for _ in obs])

    evaluator = make_evaluator(env_id, kwargs, episodes=20)
    returns: list[float] = []
    steps = 0
    try:
        while len(returns) < RANDOM_EPISODES and steps < RANDOM_STEPS:
            say(f"measuring what a random policy earns on {env_id}: {len(returns)} of {RANDOM_EPISODES} episodes")
            found, lengths = evaluator.play(act, range(len(returns), len(returns) + 20))
            returns += found.tolist()
            steps += int(lengths.sum())
    finally:
        evaluator.close()
    mean = float(np.mean(returns))
    if not math.isfinite(mean):
        raise UsageError(f"environment {env_id!r} gives rewards that are not finite; mend it, or clip its rewards")
    say(f"a random policy earns {mean:.4g} on {env_id} (mean of {len(returns)} episodes)")
    return mean, len(returns)


def to_stderr(text: str) -> None:
    """Progress for a person: on one line of a terminal, or a line each."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="" if "measuring" in text else "\n", file=sys.stderr, flush=True)
    elif "measuring" not in text:
        print(text, file=sys.stderr, flush=True)
