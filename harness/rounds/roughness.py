"""How evenly does influence spread over records that the network finds alike? The roughness of Hu et al. 2025."""

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist, squareform

Numbers = NDArray[np.float64]


def roughness(influence: Numbers, embeddings: Numbers, *, neighbours: int) -> float | None:
    """Normalised Dirichlet energy Σ w_ij (Ĩ_i − Ĩ_j)² / Σ w_ij of the influence over a similarity graph.

    Nodes are the records of positive influence, with values Ĩ = influence / max. i and j are joined if one is among the
    `neighbours` nearest of the other (of equally near ones the earlier), with w_ij = exp(−d_ij² / 2σ²) and σ the median
    distance of all pairs of nodes. Where the median is 0, only nodes in the same place are alike: w_ij = 1, else 0.
    Source: Hu et al. 2025, arXiv 2505.19281 (roughness of the influence in the temporal analysis).

    Args:
        influence: [n] one number a record.
        embeddings: [n, d] where the records lie.
        neighbours: u, at least 1; all others where there are fewer nodes.

    Returns:
        the roughness, 0 for an even spread; None with fewer than two nodes or without any weight.
    """
    positive = influence > 0
    values = influence[positive]
    if len(values) < 2:
        return None
    values = values / values.max()
    distances = pdist(embeddings[positive])
    weights = squareform(similarity(distances))
    weights[~near(squareform(distances), min(neighbours, len(values) - 1))] = 0.0
    if weights.sum() == 0:
        return None
    return float((weights * np.square(values[:, None] - values[None, :])).sum() / weights.sum())


def similarity(distances: Numbers) -> Numbers:
    """Gaussian weights of distances, the median as width."""
    width = float(np.median(distances))
    weights: Numbers = np.exp(-np.square(distances / width) / 2) if width > 0 else (distances == 0).astype(np.float64)
    return weights


def near(distances: Numbers, neighbours: int) -> NDArray[np.bool_]:
    """[m, m] True where one node is among the nearest of the other; a node is no neighbour of itself."""
    apart = distances.copy()
    np.fill_diagonal(apart, np.inf)
    nearest = np.argsort(apart, axis=1, kind="stable")[:, :neighbours]
    joined = np.zeros(distances.shape, np.bool_)
    np.put_along_axis(joined, nearest, True, axis=1)
    return joined | joined.T
