"""How is a round diagnosed? Its records ranked, valued by Monte Carlo, drawn and written down.

The work of `python -m harness.diagnose`.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import NDArray

from algos.envs.single import make_env
from filters.api import run_filter
from filters.errors import UsageError
from filters.registry import parse
from harness.drawing.diagnosis import draw_fifths, draw_ranking, draw_records
from harness.drawing.pictures import LookAround, action_name, in_words
from harness.looking.findings import read_finding, write_finding
from harness.looking.montecarlo import TrueAdvantages, play_advantages, repeated_advantages
from harness.looking.ranking import FIFTHS, Ranking, describe, rank
from harness.looking.rounds import Moment, Training
from harness.looking.snapshots import can_copy
from harness.sweeps.side_by_side import Report
from leaderboard.runs.jsonfile import Json

if TYPE_CHECKING:
    from harness.diagnose import Job


def look(job: "Job", report: Report) -> list[Json]:
    """Diagnose every round of one seed; returns the findings."""
    settings = {k: job.settings(round=k) for k in job.rounds}
    old = [read_finding(job.folder / f"round-{k}" / "diagnosis.json", settings[k]) for k in job.rounds]
    if None not in old:
        report(1.0, f"seed {job.seed} is there already")
        return [finding for finding in old if finding is not None]
    training = job.open_training()
    behind = training.state.round
    ahead = job.rounds[-1] - behind
    findings = []
    for moment in job.collect_rounds(training, report, LookAround()):
        k = moment.number
        if k in job.rounds:

            def into(done: float, k: int = k) -> None:
                report((k - behind - 1 + 0.9 * done) / ahead, f"seed {job.seed}: futures of round {k}")

            findings.append(diagnose(job, training, moment, into) | {"settings": settings[k]})
            write_finding(job.folder / f"round-{k}" / "diagnosis.json", findings[-1])
        if k < job.rounds[-1]:
            training.update(moment)
    training.close()
    return findings


def diagnose(job: "Job", training: Training, moment: Moment, on_progress: Callable[[float], None]) -> Json:
    """Rank the records of a round, value them, draw the figures; returns the numbers."""
    moment = score(job, moment)
    assert moment.record_scores is not None
    scores = moment.record_scores.double().cpu().numpy()
    env = make_env(training.args.env_id, training.args.env_kwargs)
    order = np.argsort(-scores, kind="stable")
    order = order[np.isfinite(scores[order])]
    shown = {"top": distinct(moment, order, job.args.show), "bottom": distinct(moment, order[::-1], job.args.show)}
    spread = spread_records(moment, order, job.args.records)
    true = value(job, training, moment, np.union1d(spread, np.concatenate(list(shown.values()))), on_progress)
    ranking = rank_valued(moment, scores, true, spread)
    finding: Json = job.head | {
        "round": moment.number,
        "train_return": moment.train_return,
        "advantages": {"how": true.how, "futures": true.futures, "steps": true.steps},
        "kept": float(moment.selection.keep.float().mean()),
        "summary": describe(ranking) if ranking else None,
        "shown": {name: describe_records(moment, env, scores, true, records) for name, records in shown.items()},
        "ranking": table(ranking) if ranking else None,
    }
    folder = job.folder / f"round-{moment.number}"
    draw_records(finding, moment, env, shown, folder / "records.png")
    if ranking:
        draw_ranking(finding, ranking, folder / "ranking.png")
        draw_fifths(finding, ranking, folder / "fifths.png")
    env.close()
    return finding


def score(job: "Job", moment: Moment) -> Moment:
    """The moment with the scores of the filter that ranks; raises UsageError if it gives none."""
    args = job.args
    if args.trained_by and parse(args.trained_by) != parse(args.filter):
        # What the ranking filter draws must not change what the training filter will draw.
        stream = torch.Generator(moment.rollout.generator.device)
        stream.set_state(moment.rollout.generator.get_state())
        rollout = replace(moment.rollout, generator=stream)
        moment = replace(moment, selection=run_filter(job.make_filter(), rollout, moment.objective))
    if moment.record_scores is None:
        raise UsageError(f"the filter {args.filter} gives no scores to rank by; choose another, such as iif or dtv-loo")
    return moment


def distinct(moment: Moment, order: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """The first `count` records of the order that differ in observation or action."""
    found: dict[bytes, int] = {}
    for record in order.tolist():
        if len(found) == count:
            break
        found.setdefault(pair_of(moment, record), record)
    return np.array(list(found.values()), np.int64)


def pair_of(moment: Moment, record: int) -> bytes:
    """Observation and action of a record, to compare with others."""
    columns = (moment.rollout.obs[record], moment.rollout.actions[record])
    return b"".join(column.cpu().numpy().tobytes() for column in columns)


def spread_records(moment: Moment, order: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """`count` records evenly spaced along the order; all of them if they have at most `count` different states."""
    states = {moment.seen[record].snapshot and moment.seen[record].snapshot.state for record in order.tolist()}
    if len(order) <= count or (None not in states and len(states) <= count):
        return order
    return order[np.linspace(0, len(order) - 1, count).round().astype(np.int64)]


def value(
    job: "Job", training: Training, moment: Moment, records: NDArray[np.int64], on_progress: Callable[[float], None]
) -> TrueAdvantages:
    """Monte-Carlo advantages of these records, or with states that repeat, of all that there are."""
    args = job.args
    copies = can_copy(training.state.envs.envs.envs[0])
    if args.advantages == "repeats" or not copies:
        return repeated_advantages(moment.rollout, possible=copies)
    snapshots = [sight.snapshot for sight in moment.seen]
    return play_advantages(
        training,
        moment.rollout,
        snapshots,
        records,
        futures=args.futures,
        budget=args.budget,
        seed=job.seed,
        on_progress=on_progress,
    )


def rank_valued(
    moment: Moment, scores: NDArray[np.float64], true: TrueAdvantages, spread: NDArray[np.int64]
) -> Ranking | None:
    """The ranking of the records that were valued for it; None if there are fewer than five."""
    chosen = np.isfinite(scores[true.records])
    if true.futures:
        chosen &= np.isin(true.records, spread)
    if chosen.sum() < len(FIFTHS) + 2:
        return None
    records = true.records[chosen]
    estimate = moment.rollout.advantages.double().cpu().numpy()[records]
    errors = None if true.errors is None else true.errors[chosen]
    return rank(records, scores[records], estimate, true.advantages[chosen], errors)


def table(ranking: Ranking) -> Json:
    """The ranking's columns as lists, the most helpful record first."""
    return {name: column.tolist() for name, column in vars(ranking).items() if column is not None}


def describe_records(
    moment: Moment,
    env: gym.Env[Any, Any],
    scores: NDArray[np.float64],
    true: TrueAdvantages,
    records: NDArray[np.int64],
) -> list[Json]:
    """What each of these records shows, and its numbers."""
    rollout = moment.rollout
    place = {record: i for i, record in enumerate(true.records.tolist())}
    alike = [pair_of(moment, record) for record in range(rollout.n)]
    described = []
    for record in records.tolist():
        obs, action = rollout.obs[record].cpu().numpy(), rollout.actions[record].cpu().numpy()
        i = place.get(record)
        described.append(
            {
                "record": record,
                "influence": float(scores[record]),
                "action": action_name(env, action),
                "estimate": float(rollout.advantages[record]),
                "truth": None if i is None else float(true.advantages[i]),
                "error": None if i is None or true.errors is None else float(true.errors[i]),
                "alike": alike.count(alike[record]),
                "kept": bool(moment.selection.keep[record]),
                "shows": in_words(env, moment.seen[record], obs),
            }
        )
    return described
