"""How is the influence on one action drawn over the rounds?"""

from pathlib import Path
from typing import Any

import gymnasium as gym

from harness.drawing.diagnosis import spoken_spec
from harness.drawing.figures import BLUE, COLOURS, MARKERS, RED, new_figure, number, save
from harness.drawing.pictures import draw
from harness.rounds.training import Moment
from leaderboard.runs.jsonfile import Json


def headline(finding: Json) -> str:
    """Task, filter, seed and action."""
    return f"{finding['task']}, {spoken_spec(finding)}, seed {finding['seed']}: action {finding['action']} in one state"


def draw_rounds(finding: Json, path: Path) -> None:
    """π(a|s), the influence on it and its roughness over the rounds."""
    from matplotlib.ticker import MaxNLocator

    lines = finding["rounds"]
    rounds = [line["round"] for line in lines]
    figure, (chance, influence, rough) = new_figure(1, 3, size=(13.5, 4.3))
    figure.suptitle(headline(finding), fontsize=12)
    chance.plot(rounds, [line["probability"] for line in lines], "o-", color=BLUE, markersize=4)
    chance.set(title="Probability of the action", ylabel="π(a|s) before the update")
    if max(line["probability"] for line in lines) <= 1:
        chance.set_ylim(-0.03, 1.03)
    for name, colour, marker in (("positive", BLUE, "o"), ("negative", RED, "s")):
        values = [line[name] for line in lines]
        influence.plot(rounds, values, marker=marker, color=colour, markersize=4, label=f"sum of {name} influence")
    influence.axhline(0, color="black", linewidth=0.8)
    influence.set(title="Influence on log π(a|s)", ylabel="⟨∇ log π(a|s), −∇ℓ⟩")
    influence.margins(y=0.25)
    influence.legend(fontsize=9, loc="upper left")
    for u, colour, marker in zip(lines[0]["roughness"], COLOURS, MARKERS, strict=False):
        found = [(line["round"], line["roughness"][u]) for line in lines if line["roughness"][u] is not None]
        if found:
            rough.plot(*zip(*found, strict=True), marker=marker, color=colour, markersize=4, label=f"{u} neighbours")
            rough.legend(fontsize=9)
    rough.set(title="Roughness of positive influence", ylabel="normalised Dirichlet energy")
    rough.set_ylim(bottom=0)
    for panel in (chance, influence, rough):
        panel.set_xlabel("round")
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    save(figure, path, [headline(finding), *finding["shows"], *(spoken(line) for line in lines)])


def spoken(line: Json) -> str:
    """A round in words."""
    rough = ", ".join(f"{number(value)} ({u})" for u, value in line["roughness"].items())
    return (
        f"round {line['round']}: π {number(line['probability'])}, influence +{number(line['positive'])} and "
        f"{number(line['negative'])}, {line['positive_records']} positive records, roughness (neighbours) {rough}"
    )


def draw_top(finding: Json, moments: dict[int, Moment], env: gym.Env[Any, Any], path: Path) -> None:
    """The records of the largest influence, a row for each chosen round."""
    columns = max(len(facts) for facts in finding["top"].values())
    figure, panels = new_figure(len(moments), columns, size=(2.5 * columns, 3.1 * len(moments) + 0.5))
    figure.suptitle(f"{headline(finding)}\nthe records that push it most", fontsize=12)
    words = [headline(finding)]
    for panel in panels:
        panel.axis("off")
    for row, (k, moment) in enumerate(moments.items()):
        for column, facts in enumerate(finding["top"][str(k)]):
            panel = panels[row * columns + column]
            panel.axis("on")
            draw(panel, env, moment.seen[facts["record"]], moment.rollout.obs[facts["record"]].cpu().numpy())
            panel.set_title("\n".join(caption(k, facts)), fontsize=9)
            words += ["", ", ".join(caption(k, facts)), *facts["shows"]]
    save(figure, path, words)


def caption(k: int, facts: Json) -> list[str]:
    """The numbers of a record."""
    alike = f" × {facts['alike']}" if facts["alike"] > 1 else ""
    return [
        f"round {k}: {facts['action']}{alike}",
        f"influence {number(facts['influence'])}, Â {number(facts['estimate'])}",
    ]
