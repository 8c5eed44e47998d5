"""How are the terms of DTV drawn? Over the rounds, and trajectory by trajectory in a few of them."""

from pathlib import Path

import numpy as np

from harness.drawing.figures import BLUE, GREEN, GREY, ORANGE, RED, new_figure, number, save, two_sided_log
from leaderboard.runs.jsonfile import Json


def headline(finding: Json) -> str:
    """Task, filter and seed."""
    return f"{finding['task']}, trained with {finding['filter']}, seed {finding['seed']}"


def draw_rounds(finding: Json, path: Path) -> None:
    """Medians and quartiles of the terms, kept fractions and the disputed share, over the rounds."""
    from matplotlib.ticker import MaxNLocator

    lines = finding["rounds"]
    rounds = [line["round"] for line in lines]
    figure, (sizes, kept, disputed) = new_figure(1, 3, size=(13.5, 4.4))
    figure.suptitle(headline(finding), fontsize=12)
    for name, colour, marker in (("self", ORANGE, "s"), ("cross", BLUE, "o")):
        found = [(line["round"], line[name]) for line in lines if line[name]]
        x = [k for k, _ in found]
        label = f"{name}-term (line: median, band: quartiles)"
        sizes.plot(x, [one["median"] for _, one in found], marker=marker, color=colour, markersize=4, label=label)
        sizes.fill_between(
            x, [one["low"] for _, one in found], [one["high"] for _, one in found], color=colour, alpha=0.25
        )
    sizes.axhline(0, color="black", linewidth=0.8)
    edges = [line[name][edge] for line in lines for name in ("self", "cross") if line[name] for edge in ("low", "high")]
    two_sided_log(sizes, "y", np.array(edges), decades=3)
    sizes.set(title="Terms of the trajectories' scores", ylabel="s_j and c_j")
    sizes.legend(fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.17))
    for name, colour, marker in (("dtv", ORANGE, "s"), ("dtv-loo", BLUE, "o")):
        values = [100 * line["kept"][name] for line in lines]
        kept.plot(rounds, values, marker=marker, color=colour, markersize=4, label=f"{name} would keep")
    records = [100 * line["kept"]["training filter"] for line in lines]
    kept.plot(rounds, records, ":", color=GREY, linewidth=2, label="records kept in training")
    kept.set(title="Kept trajectories", ylabel="kept, %", ylim=(-3, 103))
    kept.legend(fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2)
    disputed.plot(rounds, [100 * line["disputed"] for line in lines], "^-", color=GREEN, markersize=5)
    disputed.set(title="Kept by dtv, dropped by dtv-loo", ylabel="disputed trajectories, %")
    disputed.set_ylim(bottom=0)
    for panel in (sizes, kept, disputed):
        panel.set_xlabel("round")
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    save(figure, path, [headline(finding), *(spoken(line) for line in lines)])


def spoken(line: Json) -> str:
    """A round in words."""
    terms = ", ".join(f"{name}-term median {number(line[name]['median'])}" for name in ("self", "cross") if line[name])
    return (
        f"round {line['round']}: {line['trajectories']} trajectories, {terms}; dtv keeps {line['kept']['dtv']:.1%}, "
        f"dtv-loo {line['kept']['dtv-loo']:.1%}, disputed {line['disputed']:.1%}"
    )


def draw_units(finding: Json, path: Path) -> None:
    """Self-term against cross-term of every trajectory, in the first, the middle and the last round."""
    lines = finding["rounds"]
    chosen = [lines[i] for i in sorted({0, len(lines) // 2, len(lines) - 1})]
    figure, panels = new_figure(1, len(chosen), size=(4.6 * len(chosen), 4.9))
    figure.suptitle(f"{headline(finding)}: every trajectory's terms", fontsize=12)
    words = [headline(finding)]
    kinds = (("kept by both", BLUE, "o"), ("kept by dtv alone", RED, "D"), ("dropped by both", GREY, "v"))
    for panel, line in zip(panels, chosen, strict=True):
        pairs = zip(line["units"]["self"], line["units"]["cross"], strict=True)
        own, cross = np.array([pair for pair in pairs if None not in pair], np.float64).reshape(-1, 2).T
        groups = (cross >= 0, (cross < 0) & (own + cross >= 0), own + cross < 0)
        for (label, colour, marker), where in zip(kinds, groups, strict=True):
            panel.plot(
                cross[where], own[where], marker, color=colour, alpha=0.7, markersize=6, linestyle="none", label=label
            )
        two_sided_log(panel, "x", cross, decades=2)
        panel.set_yscale("log")
        border = np.geomspace(
            float(own.min()) / 2 if len(own) else 1e-9, max(float(np.abs(cross).max(initial=0)), 1e-9)
        )
        panel.plot(-border, border, color="black", linewidth=1, linestyle="--")
        panel.axvline(0, color="black", linewidth=1)
        panel.set(title=f"round {line['round']}", xlabel="cross-term c_j")
        counts = ", ".join(f"{kind[0]} {int(where.sum())}" for kind, where in zip(kinds, groups, strict=True))
        words.append(f"round {line['round']}: {counts}")
    panels[0].set_ylabel("self-term s_j   (dashed: s_j + c_j = 0)")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9)
    save(figure, path, words)
