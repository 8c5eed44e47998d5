"""Which records does a filter think helpful or harmful, and is it right?

The work of `python -m harness.diagnose`: the records of a round ranked, valued by Monte Carlo, drawn and written down.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import NDArray

from algos.envs.single import make_env
from filters.api import run_filter
from filters.errors import UsageError
from filters.registry import parse
from harness.drawing.diagnosis import draw_fifths, draw_ranking, draw_records, draw_summary
from harness.looking.findings import read_finding, write_finding
from harness.looking.jobs import Job, Look, plan_jobs
from harness.looking.records import distinct, pair_of, spread
from harness.rounds.montecarlo import TrueAdvantages, play_advantages, repeated_advantages
from harness.rounds.ranking import FIFTHS, Ranking, describe, mean_interval, rank
from harness.rounds.sights import LookAround, action_name, in_words, rendering
from harness.rounds.snapshots import can_copy, require_copy
from harness.rounds.training import Moment, Training
from harness.sweeps.side_by_side import Report
from leaderboard.runs.jsonfile import Json

Way = Literal["auto", "futures", "repeats"]
"""Monte-Carlo advantages from played futures or from states that repeat; auto: futures where that can be done"""


@dataclass(frozen=True)
class Valuation:
    """How records are valued, and how many of them."""

    way: Way
    records: int
    """along the ranking; all, where they have no more different states than that"""
    futures: int
    """of each value; 0: as many as `budget` allows"""
    budget: int
    """environment steps of futures a round"""


def plan(args: Look, *, seeds: tuple[int, ...], rounds: str, trained_by: str, way: Way, ranks: bool) -> list[Job]:
    """One job a seed, whose environments show what there is to be seen.

    Args:
        args: the command line.
        seeds: the seeds.
        rounds: the text of the option --round.
        trained_by: the filter of the updates; that of `args` if empty.
        way: where Monte-Carlo advantages come from.
        ranks: whether the records of every round are to be ranked by the filter's scores.

    Raises:
        UsageError: for anything that can't be.
    """
    jobs = plan_jobs(args, seeds=seeds, rounds=rounds, name="--round", counts=False, trained_by=trained_by)
    if ranks:
        check_scores(jobs[0])
    jobs = [replace(job, task=rendering(job.task)) for job in jobs]
    task = jobs[0].task
    env = make_env(task.args.env_id, task.args.env_kwargs)
    if way == "futures":
        require_copy(env, task.id)
    env.close()
    return jobs


def check_scores(job: Job) -> None:
    """Raise UsageError for a filter that passes one of the rounds unfiltered."""
    warmup = getattr(job.make_filter(), "warmup", 0)
    if job.rounds[0] <= warmup:
        raise UsageError(
            f"--round {job.rounds[0]}: the filter {job.args.filter} scores nothing in its first {warmup} rounds; "
            f"choose a later round or set warmup=0"
        )


def look(job: Job, report: Report, *, valuation: Valuation, show: int) -> list[Json]:
    """Diagnose every round of one seed; returns the findings.

    Args:
        job: the seed.
        report: told how far it is.
        valuation: how records are valued.
        show: different records to show from the top and from the bottom.
    """
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

            found = diagnose(job, training, moment, valuation=valuation, show=show, on_progress=into)
            findings.append(found | {"settings": settings[k]})
            write_finding(job.folder / f"round-{k}" / "diagnosis.json", findings[-1])
        if k < job.rounds[-1]:
            training.update(moment)
    training.close()
    return findings


def diagnose(
    job: Job,
    training: Training,
    moment: Moment,
    *,
    valuation: Valuation,
    show: int,
    on_progress: Callable[[float], None],
) -> Json:
    """Rank the records of a round, value them, draw the figures; returns the numbers."""
    moment = score(job, moment)
    assert moment.record_scores is not None
    scores = moment.record_scores.double().cpu().numpy()
    env = make_env(training.args.env_id, training.args.env_kwargs)
    order = np.argsort(-scores, kind="stable")
    order = order[np.isfinite(scores[order])]
    shown = {"top": distinct(moment, order, show), "bottom": distinct(moment, order[::-1], show)}
    along = spread(moment, order, valuation.records)
    records = np.union1d(along, np.concatenate(list(shown.values())))
    true = value(training, moment, records, valuation=valuation, seed=job.seed, on_progress=on_progress)
    ranking = rank_valued(moment, scores, true, along)
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


def score(job: Job, moment: Moment) -> Moment:
    """The moment with the scores of the filter that ranks; raises UsageError if it gives none."""
    if parse(job.trained_by) != parse(job.args.filter):
        # What the ranking filter draws must not change what the training filter will draw.
        stream = torch.Generator(moment.rollout.generator.device)
        stream.set_state(moment.rollout.generator.get_state())
        rollout = replace(moment.rollout, generator=stream)
        moment = replace(moment, selection=run_filter(job.make_filter(), rollout, moment.objective))
    if moment.record_scores is None:
        raise UsageError(
            f"the filter {job.args.filter} gives no scores to rank by; choose another, such as iif or dtv-loo"
        )
    return moment


def value(
    training: Training,
    moment: Moment,
    records: NDArray[np.int64],
    *,
    valuation: Valuation,
    seed: int,
    on_progress: Callable[[float], None],
) -> TrueAdvantages:
    """Monte-Carlo advantages of these records, or with states that repeat, of all that there are."""
    copies = can_copy(training.state.envs.envs.envs[0])
    if valuation.way == "repeats" or not copies:
        return repeated_advantages(moment.rollout, possible=copies)
    return play_advantages(
        training,
        moment.rollout,
        [sight.snapshot for sight in moment.seen],
        records,
        futures=valuation.futures,
        budget=valuation.budget,
        seed=seed,
        on_progress=on_progress,
    )


def rank_valued(
    moment: Moment, scores: NDArray[np.float64], true: TrueAdvantages, along: NDArray[np.int64]
) -> Ranking | None:
    """The ranking of the records that were valued for it; None if there are fewer than five."""
    chosen = np.isfinite(scores[true.records])
    if true.futures:
        chosen &= np.isin(true.records, along)
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


def write_summary(findings: list[Json], folder: Path) -> Json | None:
    """The means over the seeds, written and drawn; None with fewer than two seeds whose rounds could be ranked."""
    ranked = [finding for finding in findings if finding["summary"]]
    if len({finding["seed"] for finding in ranked}) < 2:
        return None
    summary = summarise(ranked)
    write_finding(folder / "summary.json", summary)
    draw_summary(summary, folder / "summary.png")
    return summary


def summarise(findings: list[Json]) -> Json:
    """Means over seeds with 95 % t intervals, round by round."""
    rounds: Json = {}
    for k in sorted({finding["round"] for finding in findings}):
        found = [finding["summary"] for finding in findings if finding["round"] == k]
        rounds[str(k)] = {
            "mismatch": {name: mean_interval([one["mismatch"][name] for one in found]) for name in FIFTHS},
            "mismatch_clear": {name: means(one["mismatch_clear"][name] for one in found) for name in FIFTHS},
            "bottom_minus_top": mean_interval([one["mismatch"]["bottom"] - one["mismatch"]["top"] for one in found]),
            "bottom_minus_middle": mean_interval(
                [one["mismatch"]["bottom"] - one["mismatch"]["middle"] for one in found]
            ),
            "spearman": means(one["spearman_product"] for one in found),
            "spearman_gap": means(one["spearman_gap"] for one in found),
        }
    head = {name: findings[0][name] for name in ("task", "filter")}
    return head | {"seeds": sorted({finding["seed"] for finding in findings}), "rounds": rounds}


def means(values: Iterable[float | None]) -> Json:
    """Mean and interval of the values that exist."""
    return mean_interval([value for value in values if value is not None])
