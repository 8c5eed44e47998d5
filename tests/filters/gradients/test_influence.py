"""The gradient engine against one backward pass a record, in float64."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from filters.api import Params
from filters.gradients import factors
from filters.gradients.influence import align_units, dots, gradient, mean_by_unit

N = 24
Net = Callable[[], tuple[nn.Module, Tensor]]


def rng() -> torch.Generator:
    return torch.Generator().manual_seed(3)


class Grid(nn.Module):
    """Two convolutions and linear layers, the first with stride and padding."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(3, 4, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(4, 5, 2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(45, 6),
        )
        self.head = nn.Linear(6, 3, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.tanh(self.trunk(x)))


class Tied(nn.Module):
    """One linear layer applied twice."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.out = nn.Linear(5, 5), nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(torch.tanh(self.layer(torch.tanh(self.layer(x)))))


class Gaussian(nn.Module):
    """A state-independent scale, which no layer reads."""

    def __init__(self) -> None:
        super().__init__()
        self.mean, self.log_std = nn.Linear(5, 3), nn.Parameter(torch.tensor([0.1, -0.2, 0.3]))

    def forward(self, x: Tensor) -> Tensor:
        return self.mean(x) * self.log_std.exp() - self.log_std


class Rows(nn.Module):
    """A linear layer over several rows a record, and one whose weight is also read directly."""

    def __init__(self) -> None:
        super().__init__()
        self.each, self.both = nn.Linear(5, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        rows = torch.tanh(self.each(torch.stack([x, 2 * x, -x], 1)))  # [n, 3, 4]
        return self.both(rows.sum(1)) + self.both.weight.sum()


class Scale(nn.Module):
    """No layer at all."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor([0.5, -1.0, 2.0]))

    def forward(self, x: Tensor) -> Tensor:
        return x[:, :3] * self.scale


class Unused(nn.Module):
    """A parameter that the loss does not depend on, and a normalisation that no factor covers."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.norm, self.idle = nn.Linear(5, 4), nn.LayerNorm(4), nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.layer(x))


VECTOR = (N, 5)
NETS = {
    "mlp": (lambda: nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 7), nn.Tanh(), nn.Linear(7, 3)), VECTOR),
    "conv": (Grid, (N, 3, 8, 8)),
    "tied": (Tied, VECTOR),
    "gaussian": (Gaussian, VECTOR),
    "rows": (Rows, VECTOR),
    "unused": (Unused, VECTOR),
    "scale": (Scale, VECTOR),
}
UNITS = {
    "one": torch.zeros(N, dtype=torch.int64),
    "records": torch.arange(N).flip(0),
    "ragged": torch.tensor([0, 1, 2, 3] + [4] * 3 + [0] * 10 + [2, 1, 4] + [5] * 4),
}


def case(name: str) -> tuple[Callable[[Params], Tensor], Params]:
    """Losses [n] of a small network with random weights, in float64."""
    build, shape = NETS[name]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = build().double()
    x = torch.randn(shape, generator=rng(), dtype=torch.float64)
    goal = torch.randn(N, 3 if name != "unused" and name != "rows" else 4, generator=rng(), dtype=torch.float64)
    params = {key: p.detach() for key, p in net.named_parameters()}

    def losses(params: Params) -> Tensor:
        return (torch.func.functional_call(net, params, (x,)) * goal).sum(1).sin()

    return losses, params


def brute(losses: Callable[[Params], Tensor], params: Params) -> Tensor:
    """[n, P] one backward pass a record."""
    leaves = {key: p.clone().requires_grad_() for key, p in params.items()}
    values = losses(leaves)
    rows = []
    for value in values:
        grads = torch.autograd.grad(
            value, list(leaves.values()), retain_graph=True, allow_unused=True, materialize_grads=True
        )
        rows.append(torch.cat([g.flatten() for g in grads]))
    return torch.stack(rows)


def unit_means(gradients: Tensor, unit: Tensor) -> Tensor:
    return torch.stack([gradients[unit == j].mean(0) for j in range(int(unit.max()) + 1)])


@pytest.mark.parametrize("name", NETS)
def test_dots_with_a_direction(name: str) -> None:
    losses, params = case(name)
    direction = {key: torch.randn(p.shape, generator=rng(), dtype=p.dtype) for key, p in params.items()}
    flat = torch.cat([d.flatten() for d in direction.values()])
    torch.testing.assert_close(dots(losses, params, direction), brute(losses, params) @ flat, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", NETS)
def test_gradient_of_a_scalar(name: str) -> None:
    losses, params = case(name)
    found = torch.cat([g.flatten() for g in gradient(lambda p: losses(p).mean(), params).values()])
    torch.testing.assert_close(found, brute(losses, params).mean(0), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize(("chunk", "long"), [(factors.CHUNK, factors.LONG), (1, 3)])
def test_alignment_of_units(name: str, units: str, chunk: int, long: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factors, "CHUNK", chunk)
    monkeypatch.setattr(factors, "LONG", long)
    monkeypatch.setattr("filters.gradients.influence.CHUNK", chunk)
    losses, params = case(name)
    g = unit_means(brute(losses, params), UNITS[units])
    found = align_units(losses, params, UNITS[units])
    torch.testing.assert_close(found.dot, g @ g.mean(0), rtol=1e-8, atol=1e-12)
    torch.testing.assert_close(found.square_norm, g.square().sum(1), rtol=1e-8, atol=1e-12)
    assert bool(found.finite.all())


@pytest.mark.parametrize(("size_in", "size_out"), [(2, 2), (40, 40)])
@pytest.mark.parametrize("rows", [1, 6])
@pytest.mark.parametrize("long", [1, 4, 64])
def test_norms_agree_however_they_are_taken(
    size_in: int, size_out: int, rows: int, long: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One by one, together by gradients (small layers), together by Gram matrices (large layers)."""
    monkeypatch.setattr(factors, "LONG", long)
    a = torch.randn(N, rows, size_in, generator=rng(), dtype=torch.float64)
    e = torch.randn(N, rows, size_out, generator=rng(), dtype=torch.float64)
    use = factors.Use("weight", None, torch.Size((size_out, size_in)), a, e)
    use.error = e
    unit = UNITS["ragged"]
    outer = torch.einsum("nro,nri->noi", e, a)
    expected = torch.stack([outer[unit == j].sum(0).square().sum() for j in range(6)])
    norms, total = factors.norms_and_sum([use], factors.group_records(unit))
    torch.testing.assert_close(norms, expected, rtol=1e-10, atol=0)
    torch.testing.assert_close(total, outer.sum(0), rtol=1e-10, atol=1e-12)


def test_groups_hold_every_record_once() -> None:
    groups = factors.group_records(UNITS["ragged"])
    for members, records in groups:
        for unit, record in zip(members.tolist(), records.tolist(), strict=True):
            assert [r for r in record if r < N] == (UNITS["ragged"] == unit).nonzero().flatten().tolist()
    assert sorted(int(u) for members, _ in groups for u in members) == list(range(6))


@pytest.mark.parametrize("name", ["mlp", "conv", "gaussian"])
@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_a_unit_whose_gradient_is_not_finite_takes_no_part(name: str, value: float) -> None:
    losses, params = case(name)
    unit = UNITS["ragged"]
    spoiled = torch.ones(N, dtype=torch.float64)
    spoiled[17] = value  # a record of unit 2

    found = align_units(lambda p: losses(p) * spoiled, params, unit)
    g = unit_means(brute(losses, params), unit)
    others = torch.arange(6) != 2
    assert found.finite.tolist() == others.tolist()
    assert found.b == 5
    torch.testing.assert_close(found.dot[others], g[others] @ g[others].mean(0), rtol=1e-8, atol=1e-12)
    torch.testing.assert_close(found.square_norm[others], g[others].square().sum(1), rtol=1e-8, atol=1e-12)
    assert bool(found.dot[2].isnan())


def test_a_product_that_is_not_finite_becomes_minus_infinity() -> None:
    losses, params = case("mlp")
    spoiled = torch.ones(N, dtype=torch.float64)
    spoiled[3] = torch.nan
    found = dots(lambda p: losses(p) * spoiled, params, params)
    assert found.isneginf().nonzero().flatten().tolist() == [3]


class Backward(torch.autograd.Function):
    """x³ without a forward-mode rule."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return 3 * ctx.saved_tensors[0] ** 2 * grad


def test_an_operator_without_forward_mode_falls_back_and_says_so_once() -> None:
    losses, params = case("mlp")

    def cubed(params: Params) -> Tensor:
        return Backward.apply(losses(params))

    with pytest.warns(UserWarning, match="no forward-mode differentiation") as caught:
        found = dots(cubed, params, params)
    assert len(caught) == 1
    flat = torch.cat([p.flatten() for p in params.values()])
    torch.testing.assert_close(found, brute(cubed, params) @ flat, rtol=1e-10, atol=1e-12)


def test_many_parameters_without_factors_are_said_to_be_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("filters.gradients.influence.MANY", 4)
    losses, params = case("unused")
    with pytest.warns(UserWarning, match=r"no factors for .*norm\.weight"):
        align_units(losses, params, UNITS["ragged"])


def test_inputs_are_left_alone() -> None:
    """Also where a record is taken out, whose inputs may be the rollout's own observations."""
    x = torch.randn(N, 5, generator=rng(), dtype=torch.float64)
    x[3] = torch.inf
    before = x.clone()
    weight = {"w": torch.ones(1, 5, dtype=torch.float64)}
    align_units(lambda p: nn.functional.linear(x, p["w"]).squeeze(1), weight, UNITS["records"])
    assert torch.equal(x, before)


def test_means_by_unit() -> None:
    assert mean_by_unit(torch.tensor([1.0, 2.0, 6.0]), torch.tensor([1, 0, 1]), 2).tolist() == [2.0, 3.5]
