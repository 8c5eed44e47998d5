"""How are the findings of a diagnosis drawn? Records as pictures, and what is known of them along the ranking."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from harness.drawing.figures import BLUE, COLOURS, GREY, MARKERS, ORANGE, RED, new_figure, number, save, two_sided_log
from harness.drawing.pictures import draw
from harness.rounds.ranking import FIFTHS, Ranking, running_mean, wilson
from harness.rounds.training import Moment
from leaderboard.runs.jsonfile import Json

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def headline(finding: Json) -> str:
    """Task, filter, seed and round."""
    return f"{finding['task']}, {spoken_spec(finding)}, seed {finding['seed']}, round {finding['round']}"


def spoken_spec(finding: Json) -> str:
    """The filter that ranks, and the one that trained if it is another."""
    spec: str = finding["filter"].replace("@", ", trained by ")
    return spec


def draw_records(
    finding: Json, moment: Moment, env: gym.Env[Any, Any], shown: dict[str, NDArray[np.int64]], path: Path
) -> None:
    """The top records in one row, the bottom records in the next."""
    columns = max(len(records) for records in shown.values())
    figure, panels = new_figure(2, columns, size=(2.5 * columns, 6.8))
    figure.suptitle(f"{headline(finding)}: the most helpful records (above) and the most harmful (below)", fontsize=12)
    for panel in panels:
        panel.axis("off")
    for row, (name, records) in enumerate(shown.items()):
        for column, (record, facts) in enumerate(zip(records.tolist(), finding["shown"][name], strict=True)):
            draw_record(panels[row * columns + column], moment, env, record, facts)
    words = [headline(finding)]
    for name in shown:
        for facts in finding["shown"][name]:
            words += ["", f"{name}: {' / '.join(caption(facts))}", *facts["shows"]]
    save(figure, path, words)


def draw_record(panel: "Axes", moment: Moment, env: gym.Env[Any, Any], record: int, facts: Json) -> None:
    """One record with its numbers above it."""
    panel.axis("on")
    draw(panel, env, moment.seen[record], moment.rollout.obs[record].cpu().numpy())
    panel.set_title("\n".join(caption(facts)), fontsize=9)


def caption(facts: Json) -> list[str]:
    """The numbers of a record, a few a line."""
    truth = "Ā unknown" if facts["truth"] is None else f"Ā {number(facts['truth'])}"
    if facts["error"]:
        truth += f" ± {number(facts['error'], 1)}"
    alike = f" × {facts['alike']}" if facts["alike"] > 1 else ""
    fate = "" if facts["kept"] else ", dropped"
    return [
        f"action {facts['action']}{alike}",
        f"influence {number(facts['influence'])}{fate}",
        f"Â {number(facts['estimate'])}",
        truth,
    ]


def draw_ranking(finding: Json, ranking: Ranking, path: Path) -> None:
    """|Ā − Â|, sign agreement and Ā·Â from the most helpful record to the most harmful one."""
    m, window = len(ranking.records), max(len(ranking.records) // 10, 1)
    places = (np.arange(m) + 0.5) / m * 100
    figure, (gap, agree, product) = new_figure(1, 3, size=(13.5, 4.3))
    figure.suptitle(f"{headline(finding)}: {m} records, {finding['advantages']['how']}", fontsize=12)

    scatter_and_mean(gap, places, ranking.gap, window, BLUE)
    gap.set(title="Error of the advantage estimate", ylabel="|Ā − Â|")

    agree.plot(places, running_mean((~ranking.mismatch).astype(np.float64), window) * 100, color=BLUE, linewidth=2.5)
    agree.set(title="Sign agreement of Ā and Â", ylabel=f"records that agree, % (mean of {window})", ylim=(-3, 103))

    rho = finding["summary"]["spearman_product"]
    scatter_and_mean(product, places, ranking.product, window, ORANGE)
    product.axhline(0, color="black", linewidth=0.8)
    product.set(title=f"Ā·Â (Spearman with the place: {number(rho)})", ylabel="Ā·Â")
    two_sided_log(product, "y", ranking.product, decades=2)
    for panel in (gap, agree, product):
        panel.set_xlabel("place in the ranking, % (0 = most helpful)")
        panel.set_xlim(0, 100)
    gap.legend(loc="best", fontsize=9)
    means = [float(ranking.gap[part].mean()) for part in np.array_split(np.arange(m), 5)]
    agreement = [float((~ranking.mismatch)[part].mean()) for part in np.array_split(np.arange(m), 5)]
    save(
        figure,
        path,
        [
            f"{headline(finding)}. {m} records from the most helpful to the most harmful.",
            f"Monte-Carlo advantages Ā: {finding['advantages']['how']}.",
            f"Mean |Ā − Â| in five equal parts, the most helpful first: {', '.join(map(number, means))}.",
            f"Share of records whose Ā and Â do not differ in sign: {', '.join(map(number, agreement))}.",
            f"Spearman correlation of the place in the ranking (1 = most helpful) with Ā·Â: {number(rho)}.",
        ],
    )


def scatter_and_mean(panel: "Axes", x: NDArray[Any], y: NDArray[Any], window: int, colour: str) -> None:
    """Every record as a faint point, their running mean as a line."""
    panel.plot(x, y, ".", color=GREY, alpha=0.35, markersize=5, label="one record")
    panel.plot(x, running_mean(y, window), color=colour, linewidth=2.5, label=f"mean of {window}")


def draw_fifths(finding: Json, ranking: Ranking, path: Path) -> None:
    """Share of sign mismatches in the bottom, the middle and the top fifth."""
    figure, (panel,) = new_figure(1, 1, size=(6.2, 4.6))
    summary, size = finding["summary"], max(len(ranking.records) // 5, 1)
    words = [f"{headline(finding)}. Share of records whose Ā and Â differ in sign, {size} records a fifth:"]
    for x, (name, colour) in enumerate(zip(FIFTHS, (RED, GREY, BLUE), strict=True)):
        shares, count = summary["mismatch"][name], size
        low, high = wilson(shares, count)
        panel.bar(x, shares * 100, color=colour, width=0.6)
        panel.errorbar(x, shares * 100, [[(shares - low) * 100], [(high - shares) * 100]], color="black", capsize=6)
        panel.text(x + 0.06, shares * 100, f" {shares:.0%}", va="bottom", ha="left", fontsize=11)
        words.append(f"{name} fifth {shares:.3f} (95 % interval {low:.3f} to {high:.3f})")
    panel.set_xticks(range(3), [f"{name} fifth" for name in FIFTHS])
    panel.set(ylabel="sign mismatches of Ā and Â, %", ylim=(0, max(10, panel.get_ylim()[1] * 1.1)))
    panel.grid(axis="x", visible=False)
    panel.set_title(f"{headline(finding)}\nbars: 95 % interval of the share, records taken as independent", fontsize=10)
    save(figure, path, words)


def draw_summary(summary: Json, path: Path) -> None:
    """Mismatches by fifth and rank correlations by round, means over seeds with 95 % t intervals."""
    rounds = summary["rounds"]
    figure, (shares, rho) = new_figure(1, 2, size=(12, 4.6))
    seeds = len(summary["seeds"])
    figure.suptitle(f"{summary['task']}, {spoken_spec(summary)}: mean of {seeds} seeds, 95 % t interval", fontsize=12)
    words = [f"{summary['task']}, {spoken_spec(summary)}: means of {seeds} seeds with 95 % t intervals."]
    for i, (name, colour) in enumerate(zip(FIFTHS, (RED, GREY, BLUE), strict=True)):
        found = [rounds[k]["mismatch"][name] for k in rounds]
        x = np.arange(len(rounds)) + (i - 1) * 0.26
        bars(shares, x, found, 100, colour, f"{name} fifth")
        words.append(f"Sign mismatches in the {name} fifth: {spoken(rounds, found)}.")
    shares.set(ylabel="sign mismatches of Ā and Â, %", title="Sign mismatches")
    shares.set_ylim(0, max(shares.get_ylim()[1], 100) * 1.2)
    shares.set_yticks(range(0, 101, 20))
    shares.legend(loc="upper center", ncols=3, fontsize=9)
    for i, (name, label) in enumerate((("spearman", "with Ā·Â"), ("spearman_gap", "with |Ā − Â|"))):
        found = [rounds[k][name] for k in rounds]
        x = np.arange(len(rounds)) + (i - 0.5) * 0.15
        points(rho, x, found, COLOURS[i], MARKERS[i], label)
        words.append(f"Spearman correlation of the place in the ranking {label}: {spoken(rounds, found)}.")
    rho.axhline(0, color="black", linewidth=0.8)
    rho.set(title="Rank correlation of the place (1 = most helpful)", ylabel="Spearman's ρ", ylim=(-1.05, 1.05))
    rho.legend(loc="upper right", fontsize=9)
    for panel in (shares, rho):
        panel.set_xticks(np.arange(len(rounds)), [f"round {k}" for k in rounds])
        panel.set_xlim(-0.6, len(rounds) - 0.4)
        panel.grid(axis="x", visible=False)
    save(figure, path, words)


def half(found: Json) -> float:
    """Half the width of an interval, 0 where there is none."""
    return 0.0 if found["ci"] is None else (found["ci"][1] - found["ci"][0]) / 2


def bars(panel: "Axes", x: NDArray[Any], found: list[Json], scale: float, colour: str, label: str) -> None:
    """Means as bars with their intervals."""
    heights = [scale * (one["mean"] or 0.0) for one in found]
    widths = [scale * half(one) for one in found]
    panel.bar(x, heights, 0.24, color=colour, label=label)
    panel.errorbar(x, heights, widths, fmt="none", color="black", capsize=4)


def points(panel: "Axes", x: NDArray[Any], found: list[Json], colour: str, marker: str, label: str) -> None:
    """Means as points with their intervals."""
    means = [np.nan if one["mean"] is None else one["mean"] for one in found]
    panel.errorbar(
        x, means, [half(one) for one in found], fmt=marker, color=colour, capsize=4, label=label, markersize=8
    )


def spoken(rounds: Json, found: list[Json]) -> str:
    """Means with intervals, round by round, in words."""
    return "; ".join(
        f"round {k} {number(one['mean'])}" + (f" ± {number(half(one))}" if one["ci"] else "")
        for k, one in zip(rounds, found, strict=True)
    )
