"""What does the DTV paper claim, and both papers of language models?

Jia et al., "Not All Rollouts Are Worth Learning", arXiv 2609.35072.
"""

from leaderboard.claims import measures
from leaderboard.claims.claim import Claim, Part, Reported, Topic, parts
from leaderboard.claims.iif import ALIKE, NOT_WORSE
from leaderboard.claims.verdict import ABOVE, BELOW, Region

LANGUAGE = "it needs a language model"
EMPTY = ("claims-dtv", "MiniGrid-Empty-8x8-dtv")
DOORKEY = ("claims-doorkey", "MiniGrid-DoorKey-8x8")
CURVES = "DTV, learning curves of PPO on MiniGrid"


def topics() -> tuple[Topic, ...]:
    """All claims of the paper on PPO, and what nobody can test here."""
    return (
        Topic("DTV: PPO on MiniGrid in the DTV setting", (*_better(), *_between(), _reward(), *_terms())),
        Topic("Language models", _language()),
    )


def _better() -> tuple[Claim, ...]:
    return tuple(
        _area(f"{name}: {label} learns faster than PPO", ABOVE, Part(*where, spec))
        for name, where in (("Empty-8x8", EMPTY), ("DoorKey-8x8", DOORKEY))
        for label, spec in (("DTV-Loo", "dtv-loo"), ("DTV", "dtv"))
    )


def _between() -> tuple[Claim, ...]:
    both = (("Empty-8x8", EMPTY), ("DoorKey-8x8", DOORKEY))
    return (
        *(
            _area(
                f"{name}: DTV-Loo is no worse than DTV, give or take the margin", NOT_WORSE, Part(*on, "dtv-loo", "dtv")
            )
            for name, on in both
        ),
        *(_area(f"{name}: DTV-Loo learns faster than IIF", ABOVE, Part(*on, "dtv-loo", "iif")) for name, on in both),
        _area("DoorKey-8x8: DTV learns faster than IIF", ABOVE, Part(*DOORKEY, "dtv", "iif")),
        Claim(
            says="Empty-8x8: all filters end like PPO, give or take the margin",
            where=CURVES,
            measure=measures.SCORE,
            region=ALIKE,
            parts=parts(EMPTY[0], [EMPTY[1]], ["iif", "dtv", "dtv-loo"]),
        ),
    )


def _reward() -> Claim:
    return Claim(
        says="dropping what has the lowest reward harms; the paper says so of GRPO, here it is PPO on Empty-8x8",
        where="DTV, reward baseline",
        reported=Reported(text="accuracy of GRPO 0.4828, Reward 5 % 0.4516"),
        measure=measures.AREA,
        region=BELOW,
        parts=(Part(*EMPTY, "reward"),),
    )


def _terms() -> tuple[Claim, ...]:
    where = "DTV, self- and cross-terms"
    return (
        Claim(
            says="Empty-8x8: the self-term protects records, so DTV keeps more of them than DTV-Loo",
            where=where,
            measure=measures.KEPT,
            region=ABOVE,
            parts=(Part(*EMPTY, "dtv", "dtv-loo"),),
        ),
        Claim(
            "a large self-term keeps trajectories that disagree with all others",
            where,
            untested="entries hold no terms; `harness.decompose` measures them: docs/looking-inside.md",
        ),
        Claim(
            "DoorKey-8x8: filtering should start after five rounds of warm-up",
            "DTV, setting of DoorKey",
            untested="no part of the runs is without the warm-up",
        ),
    )


def _language() -> tuple[Claim, ...]:
    return (
        Claim(
            "IIF makes RLHF of GPT-Neo-2.7B quicker at the same quality",
            "IIF, RLHF",
            Reported(text="about four times less time"),
            untested=LANGUAGE,
        ),
        Claim(
            "DTV-Loo improves GRPO on GSM8K",
            "DTV, GRPO",
            Reported(text="accuracy 0.5416 ± 0.0141 against 0.4828 ± 0.0077"),
            untested=LANGUAGE,
        ),
        Claim(
            "DTV-Loo improves GRPO also where a fifth of the groups have their rewards reassigned",
            "DTV, GRPO, mismatch 20 %",
            Reported(text="accuracy 0.5234 ± 0.0103 against 0.4731 ± 0.0094"),
            untested=LANGUAGE,
        ),
        Claim(
            "DTV-Loo improves DPO on UltraFeedback",
            "DTV, DPO",
            Reported(text="AUC 0.5723 ± 0.0004 against 0.5611"),
            untested=LANGUAGE,
        ),
        Claim(
            "a step with DTV takes longer than one of plain GRPO",
            "DTV, cost",
            Reported(text="+33 to +40 % on a model of 1.5 B parameters"),
            untested=LANGUAGE,
        ),
    )


def _area(says: str, region: Region, part: Part) -> Claim:
    return Claim(says, CURVES, measure=measures.AREA, region=region, parts=(part,))
