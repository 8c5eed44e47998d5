"""What does the IIF paper claim? Hu et al., "A Snapshot of Influence", NeurIPS 2025, arXiv 2505.19281."""

import math

from leaderboard.claims import measures
from leaderboard.claims.claim import Claim, Part, Reported, Topic, parts
from leaderboard.claims.measures import Measure
from leaderboard.claims.verdict import ABOVE, BELOW, Region

LOOKED_AT = "it is no matter of returns; docs/looking-inside.md has the commands that look at it"
MARGIN = 0.05
"""of normalised scores and areas: how much worse still counts as equally good"""
ALIKE = Region(-MARGIN, MARGIN)
NOT_WORSE = Region(-MARGIN, math.inf)

TASKS = ("FrozenLake", "Acrobot", "MiniGrid-Empty-8x8", "Highway", "LunarLander")
"""of the suite claims-iif"""
ADAM = ("MiniGrid-Empty-8x8-adam", "LunarLander-adam")
SHARE_TASKS = ("FrozenLake", "MiniGrid-Empty-8x8")
SHARES = ("0.0625", "0.125", "0.25", "0.5", "1")
"""every p that the paper tries"""
HEURISTICS = ("advantage-error:heuristic=1", "advantage-error:heuristic=2")

EFFICIENCY: dict[Part, tuple[tuple[float, float], ...]] = {
    Part("claims-iif", "FrozenLake", "iif"): ((34.0, 2.0), (19.2, 5.9), (29.5, 2.9)),
    Part("claims-iif", "Acrobot", "iif"): ((36.7, 6.5), (48.5, 0.8), (55.2, 1.0)),
    Part("claims-settings", "MiniGrid-Empty-8x8", "iif"): ((65.8, 3.3), (61.7, 4.1), (69.1, 1.7)),
    Part("claims-iif", "Highway", "iif"): ((37.7, 6.1), (55.1, 2.9), (59.9, 0.7)),
    Part("claims-iif", "LunarLander", "iif"): ((26.0, 1.8), (39.7, 3.7), (44.9, 2.5)),
    Part("claims-walker", "BipedalWalker", "iif"): ((31.0, 8.7), (26.2, 8.0), (29.2, 0.7)),
    Part("claims-adam", "MiniGrid-Empty-8x8-adam", "iif"): ((24.1, 1.4), (13.3, 3.1), (18.5, 1.0)),
    Part("claims-adam", "LunarLander-adam", "iif"): ((46.7, 4.5), (62.2, 5.0), (65.9, 3.2)),
}
"""SE_ave, SE_peak and RT_peak in percent with their standard errors over five seeds"""
SAVINGS: dict[Measure, str] = {
    measures.SE_AVE: "IIF reaches the levels on PPO's way in fewer environment steps",
    measures.SE_PEAK: "IIF reaches PPO's best return in fewer environment steps",
    measures.RT_PEAK: "IIF reaches PPO's best return in less training time",
}
GAINS: dict[Part, tuple[float, float]] = {
    Part("claims-settings", "MiniGrid-Empty-8x8", "iif"): (0.04, 0.33),
    Part("claims-iif", "LunarLander", "iif"): (22.54, 130.52),
    Part("claims-walker", "BipedalWalker", "iif"): (24.40, 75.99),
}
"""95 % intervals of the gain in final return"""


def topics() -> tuple[Topic, ...]:
    """All claims of the paper on PPO, by subject."""
    return (
        Topic("IIF: steps and time saved", _savings()),
        Topic("IIF: final return", tuple(_gain(part, limits) for part, limits in GAINS.items())),
        Topic("IIF: which share of the negative records to drop", _shares()),
        Topic("IIF: other ways to choose records", (*_random(), *_td_error(), *_heuristics(), _reward())),
        Topic("IIF: what it costs", _costs()),
        Topic("IIF: what influence shows", _diagnosis()),
    )


def _savings() -> tuple[Claim, ...]:
    return tuple(
        Claim(
            says=f"{part.task}: {words} ({measure.name})",
            where="IIF, table of sample efficiency and run time",
            reported=Reported(value / 100, error / 100),
            measure=measure,
            region=ABOVE,
            parts=(part,),
        )
        for part, numbers in EFFICIENCY.items()
        for (measure, words), (value, error) in zip(SAVINGS.items(), numbers, strict=True)
    )


def _gain(part: Part, limits: tuple[float, float]) -> Claim:
    return Claim(
        says=f"{part.task}: IIF ends with a higher return than PPO",
        where="IIF, intervals of the final return",
        reported=Reported(sum(limits) / 2, limits=limits),
        measure=measures.FINAL,
        region=ABOVE,
        parts=(part,),
    )


def _shares() -> tuple[Claim, ...]:
    where, suite = "IIF, sweep of p", "claims-share"
    specs = [f"iif:fraction={share}" for share in SHARES]
    return (
        Claim(
            says="every p from 6.25 % to 100 % learns faster than no filter",
            where=where,
            measure=measures.AREA,
            region=ABOVE,
            parts=parts(suite, SHARE_TASKS, specs),
        ),
        Claim(
            says="p = 100 % is unstable: its curve falls further below its own best than that of the recommended p",
            where=where,
            measure=measures.SETBACK,
            region=ABOVE,
            parts=(
                Part(suite, "FrozenLake", "iif:fraction=1", "iif:fraction=0.5"),
                Part(suite, "MiniGrid-Empty-8x8", "iif:fraction=1", "iif:fraction=0.125"),
            ),
        ),
        Claim(
            says="a simple task (FrozenLake) likes p = 50 % better than 12.5 %",
            where=where,
            measure=measures.AREA,
            region=ABOVE,
            parts=(Part(suite, "FrozenLake", "iif:fraction=0.5", "iif:fraction=0.125"),),
        ),
        Claim(
            says="a complex task (MiniGrid) likes p = 12.5 % better than 50 %",
            where=where,
            measure=measures.AREA,
            region=ABOVE,
            parts=(Part(suite, "MiniGrid-Empty-8x8", "iif:fraction=0.125", "iif:fraction=0.5"),),
        ),
    )


def _random() -> tuple[Claim, ...]:
    where = "IIF, random baseline"
    worse = "dropping random records is worse than dropping none"
    matched = (measures.AREA, ABOVE, parts("claims-iif", TASKS, ["iif"], against="random-matched"))
    return (
        _claim(f"{worse}: as many a round as IIF drops", where, BELOW, parts("claims-iif", TASKS, ["random-matched"])),
        _claim(f"{worse}: one record in eight", where, BELOW, parts("claims-iif", TASKS, ["random"])),
        _claim(f"{worse}: one record in eight, Adam", where, BELOW, parts("claims-adam", ADAM, ["random"])),
        _claim(
            f"{worse}: one record in eight, BipedalWalker",
            where,
            BELOW,
            (Part("claims-walker", "BipedalWalker", "random"),),
        ),
        Claim("dropping as many random records does not reach IIF", where, Reported(), *matched),
        _claim(
            "dropping one random record in eight does not reach IIF",
            where,
            ABOVE,
            (
                *parts("claims-iif", TASKS, ["iif"], against="random"),
                *parts("claims-adam", ADAM, ["iif"], against="random"),
                *parts("claims-walker", ["BipedalWalker"], ["iif"], against="random"),
            ),
        ),
    )


def _td_error() -> tuple[Claim, ...]:
    where = "IIF, TD-error baseline"
    return (
        _claim(
            "choosing records by TD error does not reach IIF",
            where,
            ABOVE,
            parts("claims-iif", TASKS, ["iif"], against="td-error"),
        ),
        _claim(
            "choosing records by TD error helps on FrozenLake",
            where,
            ABOVE,
            parts("claims-iif", ["FrozenLake"], ["td-error"]),
        ),
        _claim(
            "choosing records by TD error harms on LunarLander",
            where,
            BELOW,
            parts("claims-iif", ["LunarLander"], ["td-error"]),
        ),
    )


def _heuristics() -> tuple[Claim, ...]:
    where, minigrid = "IIF, advantage heuristics", "MiniGrid-Empty-8x8"
    return (
        _claim(
            "both advantage heuristics match IIF on FrozenLake: no worse than the margin",
            where,
            NOT_WORSE,
            parts("claims-share", ["FrozenLake"], HEURISTICS, against="iif:fraction=0.5"),
        ),
        _claim(
            "neither advantage heuristic reaches IIF on MiniGrid",
            where,
            BELOW,
            parts("claims-share", [minigrid], HEURISTICS, against="iif:fraction=0.125"),
        ),
        _claim(
            "both advantage heuristics harm on MiniGrid", where, BELOW, parts("claims-share", [minigrid], HEURISTICS)
        ),
    )


def _reward() -> Claim:
    return _claim(
        "dropping the records of highest and lowest reward is worse than dropping random ones",
        "IIF, reward baseline",
        BELOW,
        parts("claims-iif", TASKS, ["reward"], against="random"),
    )


def _costs() -> tuple[Claim, ...]:
    return (
        Claim(
            says="computing influence takes at most 12 % of the time of optimisation",
            where="IIF, cost of a round",
            reported=Reported(text="2 to 12 %"),
            measure=measures.COST,
            region=Region(-math.inf, 0.12),
            parts=parts("claims-iif", TASKS, ["iif"]),
        ),
        Claim(
            says="a round of IIF is quicker than one of PPO, as it makes fewer optimizer steps",
            where="IIF, cost of a round",
            reported=Reported(text="MiniGrid 4.52 s against 5.02 s, Acrobot 1.42 s against 2.02 s"),
            measure=measures.TIME,
            region=ABOVE,
            parts=parts("claims-iif", TASKS, ["iif"]),
        ),
    )


def _diagnosis() -> tuple[Claim, ...]:
    return (
        Claim(
            "most records of negative influence have advantages of the wrong sign", "IIF, diagnosis", untested=LOOKED_AT
        ),
        Claim(
            "influence over a similarity graph is rough at first, then smooth (clustering), then smooth with noise",
            "IIF, temporal analysis",
            untested=LOOKED_AT,
        ),
        Claim(
            "in a single round, dropping the negative records beats the whole update and a random drop",
            "IIF, targeted intervention",
            untested=f"no part of the runs makes single updates; {LOOKED_AT.partition('; ')[2]}",
        ),
        Claim(
            "a fixed reference from a trained policy is worse than the rollout's own",
            "IIF, choice of the reference",
            untested=f"no part of the runs has a fixed reference; {LOOKED_AT.partition('; ')[2]}",
        ),
    )


def _claim(says: str, where: str, region: Region, on: tuple[Part, ...]) -> Claim:
    """A claim on the area under the curve, for which the paper gives no number that could be compared."""
    return Claim(says, where, measure=measures.AREA, region=region, parts=on)
