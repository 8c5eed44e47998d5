"""Which records did each round drop, and with which scores?

import numpy as np
print(np.load("runs/<task>/<filter>/seed-0/trace/round-0003.npz")["keep"])
"""

from pathlib import Path

import numpy as np

from algos.training.recorder import Round

FOLDER = "trace"


def write_trace(folder: Path, report: Round) -> None:
    """Write `trace/round-NNNN.npz` below a run directory, compressed.

    It holds `keep` [n] bool, `scores` float32 ([n], or [U] where trajectories are scored; missing where nothing was),
    `trajectory` [n] int32, each term of the scores, and `corrupted` [n] bool where records were made harmful.

    Raises:
        OSError: if the folder can't be written to.
    """
    arrays = {"keep": report.selection.keep.cpu().numpy(), "trajectory": report.trajectory.int().cpu().numpy()}
    if report.selection.scores is not None:
        arrays["scores"] = report.selection.scores.float().cpu().numpy()
        arrays |= {f"term_{name}": term.float().cpu().numpy() for name, term in report.selection.terms.items()}
    if report.corrupted is not None and report.corrupted.marks.any():
        arrays["corrupted"] = report.corrupted.marks.reshape(-1)
    file = folder / FOLDER / f"round-{report.number:04d}.npz"
    file.parent.mkdir(exist_ok=True)
    np.savez_compressed(file, allow_pickle=False, **arrays)
