"""How well do a filter's scores tell corrupted records from clean ones, and did it drop the right ones?"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from algos.training.recorder import Round


def auroc(corrupted: NDArray[np.bool_], suspicion: NDArray[np.float64]) -> float:
    """Probability that a corrupted record is more suspicious than a clean one, ties counted half.

    Args:
        corrupted: [n] True where a record was made harmful.
        suspicion: [n] any numbers, infinities included; higher means more suspicious.

    Returns:
        a number in [0, 1]; NaN if there are no corrupted or no clean records.

    Source: Mann & Whitney 1947.
    """
    bad, good = int(corrupted.sum()), int((~corrupted).sum())
    if not bad or not good:
        return float("nan")
    return float((rankdata(suspicion)[corrupted].sum() - bad * (bad + 1) / 2) / (bad * good))


def average_precision(corrupted: NDArray[np.bool_], suspicion: NDArray[np.float64]) -> float:
    """Σ (R_k − R_{k−1}) P_k over the distinct suspicions, the most suspicious first; precision P, recall R.

    Args and returns as `auroc`; a filter that knows nothing gets the share of corrupted records.
    """
    if not corrupted.any() or corrupted.all():
        return float("nan")
    order = np.argsort(-suspicion, kind="stable")
    hits = corrupted[order].cumsum()
    last_of_ties = np.flatnonzero(np.append(np.diff(suspicion[order]) != 0, True))
    hits, taken = hits[last_of_ties], last_of_ties + 1
    recall = hits / hits[-1]
    return float((np.diff(recall, prepend=0.0) * hits / taken).sum())


def suspicion(report: Round) -> NDArray[np.float64]:
    """[n] minus the scores, a trajectory's for each of its records; where there are none, 1 for what was dropped."""
    scores = report.selection.scores
    if scores is None:
        return (~report.selection.keep).double().cpu().numpy()
    records = scores if len(scores) == len(report.trajectory) else scores[report.trajectory]
    return -records.double().cpu().numpy()


def detection(report: Round) -> dict[str, Any]:
    """What a round's line says of the corruption; None where nothing can be said (JSON has no NaN).

    Returns:
        `corrupted`, the share of the records; `auroc` and `average_precision` of the scores; `recall` and `precision`
        of what was dropped.
    """
    assert report.corrupted is not None
    marks = report.corrupted.marks.reshape(-1)
    dropped = ~report.selection.keep.cpu().numpy()
    both = int((marks & dropped).sum())
    numbers = {
        "corrupted": float(marks.mean()),
        "auroc": auroc(marks, suspicion(report)),
        "average_precision": average_precision(marks, suspicion(report)),
        "recall": both / marks.sum() if marks.any() else float("nan"),
        "precision": both / dropped.sum() if dropped.any() else float("nan"),
    }
    return {name: None if np.isnan(number) else float(number) for name, number in numbers.items()}
