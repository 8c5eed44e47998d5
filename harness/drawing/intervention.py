"""How is an intervention drawn? Boxes over all rounds and seeds, and each arm round by round."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from harness.drawing.figures import BLUE, GREY, MARKERS, ORANGE, interval, new_figure, number, save
from leaderboard.runs.jsonfile import Json

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABELS = {"f_return": "Δ f_return", "test_return": "Δ test return"}
ARM_COLOURS = {"ordinary": GREY, "filtered": BLUE, "random": ORANGE}


def headline(summary: Json) -> str:
    """Task, filter, and how much there is."""
    many = f"{len(summary['rounds'])} rounds × {len(summary['seeds'])} seeds, {summary['episodes']} test episodes each"
    return f"{summary['task']}, {summary['filter']}: {many}"


def draw_boxes(summary: Json, path: Path) -> None:
    """Per outcome: the change that each arm makes, and the paired differences from the ordinary update."""
    figure, panels = new_figure(1, 4, size=(14.5, 5))
    figure.suptitle(headline(summary), fontsize=12)
    lines = summary["interventions"]
    words = [headline(summary)]
    for i, (name, label) in enumerate(LABELS.items()):
        changes = {arm: [line[arm][name] for line in lines] for arm in ARM_COLOURS}
        boxes(panels[2 * i], changes, lines, tuple(ARM_COLOURS.values()))
        panels[2 * i].set(title=f"{label} of the update", ylabel=label)
        paired = {
            f"{arm}\n− ordinary": [line[arm][name] - line["ordinary"][name] for line in lines]
            for arm in ("filtered", "random")
        }
        panel = panels[2 * i + 1]
        boxes(panel, paired, lines, (BLUE, ORANGE))
        panel.set(title=f"paired: {label}", ylabel=f"difference in {label}")
        for arm in ARM_COLOURS:
            words.append(f"{label}, {arm} update: {quartiles(changes[arm])}")
        for arm in ("filtered", "random"):
            found = summary["paired"][f"{name}: {arm} - ordinary"]
            words.append(f"{label}, {arm} − ordinary, paired: {spoken(found)}")
            mark_mean(panel, 0 if arm == "filtered" else 1, found["interventions"])
    panels[1].legend(loc="best", fontsize=9)
    save(figure, path, words)


def boxes(panel: "Axes", groups: dict[str, list[float]], lines: list[Json], colours: tuple[str, ...]) -> None:
    """A box a group (median, quartiles, whiskers of 1.5 box lengths), each intervention a point, each seed a sign."""
    drawn = panel.boxplot(list(groups.values()), positions=range(len(groups)), widths=0.55, showfliers=False)
    for element, colour in zip(drawn["boxes"], colours, strict=True):
        element.set(color=colour, linewidth=2)
    for median in drawn["medians"]:
        median.set(color="black", linewidth=2)
    seeds = sorted({line["seed"] for line in lines})
    for x, values in enumerate(groups.values()):
        for i, seed in enumerate(seeds):
            own = [value for value, line in zip(values, lines, strict=True) if line["seed"] == seed]
            shift = (i - (len(seeds) - 1) / 2) * 0.36 / max(len(seeds), 2)
            marker = MARKERS[i % len(MARKERS)]
            panel.plot(np.full(len(own), x + shift), own, marker, color=GREY, alpha=0.6, markersize=4)
    panel.axhline(0, color="black", linewidth=0.8)
    panel.set_xticks(range(len(groups)), list(groups))
    panel.grid(axis="x", visible=False)


def mark_mean(panel: "Axes", x: int, found: Json) -> None:
    """The mean with its interval, to the right of its box."""
    half = 0.0 if found["ci"] is None else (found["ci"][1] - found["ci"][0]) / 2
    label = "mean, 95 % interval" if x == 0 else None
    panel.errorbar(x + 0.38, found["mean"], half, fmt="D", color="black", capsize=5, markersize=6, label=label)


def draw_rounds(summary: Json, path: Path) -> None:
    """The mean change that each arm makes, round by round, and every seed's as a point."""
    figure, panels = new_figure(1, 2, size=(12, 4.6))
    figure.suptitle(headline(summary), fontsize=12)
    words = [headline(summary)]
    for panel, (name, label) in zip(panels, LABELS.items(), strict=True):
        for i, (arm, colour) in enumerate(ARM_COLOURS.items()):
            means = []
            for j, k in enumerate(summary["rounds"]):
                found = [line[arm][name] for line in summary["interventions"] if line["round"] == k]
                means.append(float(np.mean(found)))
                panel.plot([j + (i - 1) * 0.18] * len(found), found, MARKERS[i], color=colour, alpha=0.35, markersize=4)
            places = np.arange(len(means)) + (i - 1) * 0.18
            panel.plot(places, means, MARKERS[i], linestyle="-", color=colour, linewidth=1.8, label=arm)
            by_round = "; ".join(f"{k} {number(m)}" for k, m in zip(summary["rounds"], means, strict=True))
            words.append(f"Mean {label} of the {arm} update by round: {by_round}.")
        panel.axhline(0, color="black", linewidth=0.8)
        panel.set_xticks(range(len(summary["rounds"])), [str(k) for k in summary["rounds"]])
        panel.set(title=f"{label} of one update (line: mean of the seeds)", xlabel="round", ylabel=label)
        panel.grid(axis="x", visible=False)
    panels[0].legend(fontsize=9)
    save(figure, path, words)


def quartiles(values: list[float]) -> str:
    """Median and quartiles in words."""
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    return f"median {number(middle)}, quartiles {number(low)} and {number(high)}"


def spoken(paired: Json) -> str:
    """A paired difference in words."""
    means = {over: paired[over] for over in ("interventions", "seeds")}
    return ", ".join(f"mean {interval(found)} over {found['n']} {over}" for over, found in means.items())
