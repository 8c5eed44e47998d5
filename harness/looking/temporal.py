"""How did an action in a state become likely? The influence of each round's records on log π(a|s), round by round.

The work of `python -m harness.diagnose --target action`.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from filters.api import Params
from filters.errors import UsageError
from filters.gradients.influence import dots, gradient
from harness.drawing.figures import number
from harness.drawing.pictures import LookAround, action_name, in_words
from harness.drawing.temporal import draw_rounds, draw_top
from harness.looking.diagnosis import distinct, pair_of
from harness.looking.findings import write_finding
from harness.looking.roughness import roughness
from harness.looking.rounds import Moment, Training
from harness.sweeps.side_by_side import Report
from harness.tasks.catalogue import find_task
from leaderboard.runs.jsonfile import Json

if TYPE_CHECKING:
    from harness.diagnose import Args, Job

NEIGHBOURS = (20, 50, 100)
"""u of the similarity graphs"""


def check(args: "Args", env: gym.Env[Any, Any]) -> None:
    """Raise UsageError unless the command line names one state and one action of this environment."""
    if bool(args.observation) == (args.pick >= 0):
        raise UsageError("--target action needs a state: say either --observation and --action, or --pick a record")
    if args.pick >= (n := find_batch(args)):
        raise UsageError(f"--pick {args.pick}: a rollout of this task has records 0..{n - 1}")
    if args.observation:
        read_observation(args.observation, env)
    space = env.action_space
    if not isinstance(space, gym.spaces.Discrete):
        if args.action >= 0 or args.observation:
            raise UsageError("this task's actions are no numbered ones; use --pick, which takes state and action")
        return
    if not (args.pick >= 0 and args.action < 0) and not 0 <= args.action < space.n:
        raise UsageError(f"--action must lie in 0..{int(space.n) - 1} on this task, got {args.action}")


def find_batch(args: "Args") -> int:
    """Records of a rollout."""
    return find_task(args.task).args.batch_size


def read_observation(text: str, env: gym.Env[Any, Any]) -> NDArray[Any]:
    """The observation [*obs] that the text or the file means.

    Raises:
        UsageError: not numbers, or not of the environment's shape.
    """
    space = env.observation_space
    shape = space.shape or ()
    bare = env.unwrapped.observation_space
    numbers = _read_numbers(text)
    if isinstance(bare, gym.spaces.Discrete) and numbers.size == 1:
        state = int(numbers.ravel()[0])
        if not 0 <= state < bare.n:
            raise UsageError(f"--observation {text}: the states of this task are 0..{int(bare.n) - 1}")
        numbers = np.eye(int(bare.n))[state]
    if numbers.shape != shape:
        raise UsageError(
            f"--observation has shape {list(numbers.shape)}, this task observes {list(shape)}; "
            + ("give as many numbers" if len(shape) == 1 else "give a .npy or .json file of that shape")
        )
    return numbers.astype(space.dtype)


def _read_numbers(text: str) -> NDArray[Any]:
    try:
        if text.endswith(".npy"):
            return np.asarray(np.load(text), np.float64)
        if text.endswith(".json"):
            return np.asarray(json.loads(Path(text).read_text(encoding="utf-8")), np.float64)
        return np.array([float(word) for word in text.split(",")])
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(
            f"--observation {text!r} can't be read as numbers ({error}); give 0.1,0.2,… or a .npy or .json file"
        ) from error


def influence_on_action(moment: Moment, obs: Tensor, action: Tensor) -> Tensor:
    """Influence [n] of every record on f_action(θ) = log π_θ(a|s): ⟨∇f_action, −∇ℓ_i⟩.

    Args:
        moment: the round.
        obs: [1, *obs] the state.
        action: [1, *act] the action.
    """
    objective = moment.objective

    def target(params: Params) -> Tensor:
        return -objective.logprob(params, obs, action).sum()

    return dots(objective.per_record, objective.params, gradient(target, objective.params))


def embed(agent: nn.Module, obs: Tensor) -> NDArray[np.float64]:
    """Where the policy network puts observations [n, *obs]: the inputs [n, d] of its last layer."""
    assert isinstance(agent.actor, nn.Module)
    last = [layer for layer in agent.actor.modules() if isinstance(layer, nn.Linear)][-1]
    caught: list[Tensor] = []
    hook = last.register_forward_pre_hook(lambda _, inputs: caught.append(inputs[0].detach()))
    with torch.inference_mode():
        agent(obs)
    hook.remove()
    found: NDArray[np.float64] = caught[0].double().cpu().numpy()
    return found


def look(job: "Job", report: Report) -> list[Json]:
    """Follow the influence on one action from the first round to the last; returns one finding."""
    folder, last = job.folder / f"action-round-{job.rounds[-1]}", job.rounds[-1]
    settings = job.settings()  # of the code and the files as they are now, not after the work
    old = job.read_finding(f"{folder.name}/temporal.json", settings, report)
    if old is not None:
        return [old]
    training = job.open_training()
    start = training.state.round + 1
    if len(job.rounds) == 1:
        job = replace(job, rounds=tuple(sorted({start, (start + last) // 2, last})))
    obs, action = torch.empty(0), torch.empty(0)
    lines: list[Json] = []
    positive: list[tuple[NDArray[Any], Tensor]] = []
    top: dict[int, tuple[Moment, list[Json]]] = {}
    for moment in job.collect_rounds(training, report, LookAround()):
        if moment.number == start:
            obs, action = find_pair(job.args, training, moment)
            first = moment
        influence = influence_on_action(moment, obs, action)
        lines.append(describe_round(moment, influence, obs, action))
        positive.append((influence.double().cpu().numpy(), moment.rollout.obs))
        if moment.number in job.rounds:
            top[moment.number] = (moment, top_records(job, training, moment, influence))
        training.update(moment)
    for line, (values, seen) in zip(lines, positive, strict=True):
        report((last - 0.5) / last, f"seed {job.seed}: roughness of round {line['round']}")
        places = embed(training.state.agent, seen)
        line["roughness"] = {str(u): roughness(values, places, neighbours=u) for u in NEIGHBOURS}
    env = training.state.envs.envs.envs[0]
    finding: Json = job.head | {
        "observation": obs[0].cpu().numpy().tolist(),
        "action": action_name(env, action[0].cpu().numpy()),
        "shows": shown_state(job.args, env, first, obs),
        "rounds": lines,
        "top": {str(k): facts for k, (_, facts) in top.items()},
        "settings": settings,
    }
    draw_rounds(finding, folder / "rounds.png")
    draw_top(finding, {k: moment for k, (moment, _) in top.items()}, env, folder / "top-records.png")
    write_finding(folder / "temporal.json", finding)
    training.close()
    return [finding]


def find_pair(args: "Args", training: Training, moment: Moment) -> tuple[Tensor, Tensor]:
    """State [1, *obs] and action [1, *act] of the command line, as the network takes them."""
    rollout = moment.rollout
    if args.pick >= 0:
        obs, action = rollout.obs[args.pick : args.pick + 1], rollout.actions[args.pick : args.pick + 1]
        return obs, action if args.action < 0 else torch.full_like(action, args.action)
    given = read_observation(args.observation, training.state.envs.envs.envs[0])
    obs = training.module.tensor(given[None], training.args.device)
    return obs, torch.full_like(rollout.actions[:1], args.action)


def shown_state(args: "Args", env: gym.Env[Any, Any], first: Moment, obs: Tensor) -> list[str]:
    """The state in words, as the first rollout saw it if it did."""
    same = (first.rollout.obs == obs).flatten(1).all(1).nonzero().flatten().tolist()
    array = obs[0].cpu().numpy()
    record = args.pick if args.pick >= 0 else same[0] if same else None
    if record is not None:
        return in_words(env, first.seen[record], array)
    return [np.array2string(array, precision=3, separator=", ", threshold=50)]


def describe_round(moment: Moment, influence: Tensor, obs: Tensor, action: Tensor) -> Json:
    """The numbers of a round that need no later network."""
    rollout = moment.rollout
    here = (rollout.obs == obs).flatten(1).all(1)
    taken = here & (rollout.actions == action).reshape(rollout.n, -1).all(1)
    finite = influence[influence.isfinite()]
    return {
        "round": moment.number,
        "probability": float(moment.objective.logprob(moment.objective.params, obs, action).exp()),
        "train_return": moment.train_return,
        "positive": float(finite.clamp(min=0).sum()),
        "negative": float(finite.clamp(max=0).sum()),
        "positive_records": int((finite > 0).sum()),
        "visits_of_state": int(here.sum()),
        "visits_of_pair": int(taken.sum()),
        "share_of_own_visits": share_of(influence.clamp(min=0), here),
    }


def share_of(values: Tensor, chosen: Tensor) -> float | None:
    """The chosen records' share of the sum of values [n] ≥ 0; None of nothing."""
    total = float(values.sum())
    return float(values[chosen].sum()) / total if total > 0 else None


def top_records(job: "Job", training: Training, moment: Moment, influence: Tensor) -> list[Json]:
    """The different records of the largest influence."""
    env = training.state.envs.envs.envs[0]
    order = (-influence).argsort(stable=True).cpu().numpy()
    pairs = [pair_of(moment, record) for record in range(moment.rollout.n)]
    facts = []
    for record in distinct(moment, order, job.args.show).tolist():
        obs, action = moment.rollout.obs[record].cpu().numpy(), moment.rollout.actions[record].cpu().numpy()
        facts.append(
            {
                "record": record,
                "influence": float(influence[record]),
                "action": action_name(env, action),
                "estimate": float(moment.rollout.advantages[record]),
                "alike": pairs.count(pairs[record]),
                "shows": in_words(env, moment.seen[record], obs),
            }
        )
    return facts


def sentence(finding: Json) -> str:
    """One line about a finding."""
    first, last = finding["rounds"][0], finding["rounds"][-1]
    rough = [number(line["roughness"]["50"]) for line in (first, last)]
    return (
        f"seed {finding['seed']}, action {finding['action']}: π {number(first['probability'])} in round "
        f"{first['round']}, {number(last['probability'])} in round {last['round']}; "
        f"roughness (50 neighbours) {rough[0]} → {rough[1]}"
    )
