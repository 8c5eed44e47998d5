"""How did an action in a state become likely? The influence of each round's records on log π(a|s), round by round.

The work of `python -m harness.diagnose --target action`.
"""

from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from filters.api import Params
from filters.gradients.influence import dots, gradient
from harness.drawing.temporal import draw_rounds, draw_top
from harness.looking import pairs
from harness.looking.findings import write_finding
from harness.looking.jobs import Job
from harness.looking.pairs import Pair
from harness.looking.records import distinct, pair_of
from harness.rounds.roughness import roughness
from harness.rounds.sights import LookAround, action_name, in_words
from harness.rounds.training import Moment, Training
from harness.sweeps.side_by_side import Report
from leaderboard.runs.jsonfile import Json

NEIGHBOURS = (20, 50, 100)
"""u of the similarity graphs"""


@dataclass
class Course:
    """The influence on one action in one state, as far as the rounds were followed."""

    first: Moment
    obs: Tensor
    """[1, *obs] the state"""
    action: Tensor
    """[1, *act] the action"""
    lines: list[Json] = field(default_factory=list)
    """the numbers of each round"""
    influences: list[NDArray[np.float64]] = field(default_factory=list)
    """[n] of each round's records"""
    places: list[Tensor] = field(default_factory=list)
    """[n, *obs] what these records saw"""
    top: dict[int, tuple[Moment, list[Json]]] = field(default_factory=dict)
    """the chosen rounds, with the records that push the action most"""


def look(job: Job, report: Report, *, pair: Pair, show: int) -> Json:
    """Follow the influence on one action from the first round to the last; returns the finding.

    Args:
        job: the seed; a single round is where it ends, and rounds are chosen on the way there.
        report: told how far it is.
        pair: the state and the action.
        show: different records to show from the top of each chosen round.
    """
    folder = job.folder / f"action-round-{job.rounds[-1]}"
    settings = job.settings()  # of the code and the files as they are now, not after the work
    old = job.read_finding(f"{folder.name}/temporal.json", settings, report)
    if old is not None:
        return old
    training = job.open_training()
    course = follow(job, training, report, pair=pair, show=show)
    measure_roughness(course, job, training, report)
    env = training.state.envs.envs.envs[0]
    finding: Json = job.head | {
        "observation": course.obs[0].cpu().numpy().tolist(),
        "action": action_name(env, course.action[0].cpu().numpy()),
        "shows": pairs.show_state(pair, env, course.first, course.obs),
        "rounds": course.lines,
        "top": {str(k): facts for k, (_, facts) in course.top.items()},
        "settings": settings,
    }
    draw_rounds(finding, folder / "rounds.png")
    draw_top(finding, {k: moment for k, (moment, _) in course.top.items()}, env, folder / "top-records.png")
    write_finding(folder / "temporal.json", finding)
    training.close()
    return finding


def follow(job: Job, training: Training, report: Report, *, pair: Pair, show: int) -> Course:
    """Go through all rounds and take down the influence of their records."""
    start, last = training.state.round + 1, job.rounds[-1]
    if len(job.rounds) == 1:
        job = replace(job, rounds=tuple(sorted({start, (start + last) // 2, last})))
    course: Course | None = None
    for moment in job.collect_rounds(training, report, LookAround()):
        if course is None:
            course = Course(moment, *pairs.find(pair, training, moment))
        influence = influence_on_action(moment, course.obs, course.action)
        course.lines.append(describe_round(moment, influence, course.obs, course.action))
        course.influences.append(influence.double().cpu().numpy())
        course.places.append(moment.rollout.obs)
        if moment.number in job.rounds:
            course.top[moment.number] = (moment, top_records(training, moment, influence, show))
        training.update(moment)
    assert course is not None
    return course


def measure_roughness(course: Course, job: Job, training: Training, report: Report) -> None:
    """Add the roughness of each round's influence, where the last round's network puts the records."""
    last = job.rounds[-1]
    for line, influence, obs in zip(course.lines, course.influences, course.places, strict=True):
        report((last - 0.5) / last, f"seed {job.seed}: roughness of round {line['round']}")
        places = embed(training.state.agent, obs)
        line["roughness"] = {str(u): roughness(influence, places, neighbours=u) for u in NEIGHBOURS}


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


def top_records(training: Training, moment: Moment, influence: Tensor, show: int) -> list[Json]:
    """The different records of the largest influence."""
    env = training.state.envs.envs.envs[0]
    order = (-influence).argsort(stable=True).cpu().numpy()
    alike = [pair_of(moment, record) for record in range(moment.rollout.n)]
    facts = []
    for record in distinct(moment, order, show).tolist():
        obs, action = moment.rollout.obs[record].cpu().numpy(), moment.rollout.actions[record].cpu().numpy()
        facts.append(
            {
                "record": record,
                "influence": float(influence[record]),
                "action": action_name(env, action),
                "estimate": float(moment.rollout.advantages[record]),
                "alike": alike.count(alike[record]),
                "shows": in_words(env, moment.seen[record], obs),
            }
        )
    return facts
