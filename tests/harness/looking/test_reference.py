"""IIF against a fixed reference: made by a command, used by a spec, refused where it does not fit."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from algos import ppo
from algos.training.recorder import SilentRecorder
from filters.errors import FilterError, UsageError
from filters.gradients.reference import Reference, load
from filters.iif import IIF
from filters.registry import make

ARGS = ppo.Args(env_id="Acrobot-v1", num_envs=2, num_steps=32, minibatch_size=16, total_steps=64)


def python(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reference")
    words = ["--task", "smoke-FrozenLake", "--file", str(folder / "lake.ref"), "--events", str(folder / "events")]
    done = python("-m", "harness.reference", *words)
    assert done.returncode == 0, done.stderr
    assert "use it as iif:reference=" in done.stdout
    return folder / "lake.ref"


def test_a_run_takes_the_reference(file: Path, tmp_path: Path) -> None:
    words = ["--task", "smoke-FrozenLake", "--seeds", "1", "--out", str(tmp_path)]
    done = python("-m", "harness.run", "--filter", "iif", f"iif:reference={file}", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list(tmp_path.rglob("run.json"))) == 3


def test_another_file_under_the_same_name_is_another_setting(file: Path, tmp_path: Path) -> None:
    reference = tmp_path / "a.ref"
    reference.write_bytes(file.read_bytes())
    command = ["-m", "harness.run", "--filter", f"random-matched:of=iif:reference={reference}", "--no-baseline"]
    command += ["--task", "smoke-FrozenLake", "--seeds", "1", "--out", str(tmp_path / "runs")]
    assert python(*command).returncode == 0
    assert python(*command).returncode == 0
    replace(load(str(reference)), task="another").save(reference)
    done = python(*command)
    assert done.returncode == 2
    assert "other settings (filter_files differ)" in done.stderr


def test_a_reference_of_another_architecture_is_a_failed_cell(file: Path, tmp_path: Path) -> None:
    words = ["--task", "smoke-MiniGrid", "--seeds", "1", "--out", str(tmp_path)]
    done = python("-m", "harness.run", "--filter", f"iif:reference={file}", *words)
    assert done.returncode == 1
    assert "trained on smoke-FrozenLake/v1 with another architecture" in " ".join(done.stdout.split())
    assert "Traceback" not in done.stdout + done.stderr


def test_scores_equal_brute_force_on_the_reference_s_records(tmp_path: Path) -> None:
    """And the rollout's own records as a fixed reference give the dynamic scores."""
    state, other = ppo.open_state(ARGS), ppo.open_state(replace(ARGS, seed=1))
    rollout, _ = ppo.collect(state, ARGS, SilentRecorder())
    foreign, _ = ppo.collect(other, ARGS, SilentRecorder())
    objective = ppo.open_objective(state.agent, rollout, ARGS)
    params = {name: p.detach() for name, p in other.agent.named_parameters()}
    for name, records in {"own": rollout, "foreign": foreign}.items():
        Reference("task", params, records.obs, records.actions, records.advantages).save(tmp_path / name)

    own = IIF(reference=str(tmp_path / "own")).score(rollout, objective)
    torch.testing.assert_close(own, IIF().score(rollout, objective))

    path = list(state.agent.actor.parameters())
    logprob = ppo.log_prob(state.agent(foreign.obs), foreign.actions)
    f_return = torch.autograd.grad((logprob * foreign.advantages).mean(), path)
    losses = objective.per_record({f"actor.{name}": p for name, p in state.agent.actor.named_parameters()})
    brute = []
    for loss in losses:
        gradients = torch.autograd.grad(loss, path, retain_graph=True)
        brute.append(-sum((g * f).sum() for g, f in zip(gradients, f_return, strict=True)))
    found = IIF(reference=str(tmp_path / "foreign")).score(rollout, objective)
    torch.testing.assert_close(found, torch.stack(brute), rtol=1e-4, atol=1e-6)  # type: ignore[arg-type]
    assert not torch.allclose(found, own)


class Payload:
    def __reduce__(self) -> tuple[object, ...]:
        return os.system, ("touch owned",)


def test_a_file_that_is_no_reference_is_refused_and_never_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("hello")
    torch.save({"weights": torch.ones(1)}, "other")
    torch.save({"format": "filtergym-reference-1", "payload": Payload()}, "hostile")
    for name in ("text", "other", "hostile"):
        with pytest.raises(UsageError, match="is no reference made by"):
            make(f"iif:reference={name}")
    assert not Path("owned").exists()
    with pytest.raises(UsageError, match="can't read the reference 'absent'"):
        make("iif:reference=absent")
    torch.save({"format": "filtergym-reference-1", "task": "x"}, "partial")
    with pytest.raises(UsageError, match="is no reference"):
        make("iif:reference=partial")


def test_the_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    one = torch.ones(1)
    Reference("one", {}, one, one, one).save(tmp_path / "ref")
    assert load(str(tmp_path / "ref")).task == "one"
    Reference("two", {}, one, one, one).save(tmp_path / "ref")
    os.utime(tmp_path / "ref", ns=(1, 1))
    assert load(str(tmp_path / "ref")).task == "two"


def test_bad_input_of_the_command(tmp_path: Path) -> None:
    done = python("-m", "harness.reference", "--task", "FrozenLak", "--file", str(tmp_path / "x"))
    assert done.returncode == 2
    assert "did you mean 'FrozenLake/v1'" in done.stderr
    done = python("-m", "harness.reference", "--task", "smoke-FrozenLake", "--file", str(tmp_path / "no" / "x"))
    assert done.returncode == 2
    assert "does not exist" in done.stderr


def test_a_reference_that_does_not_fit_says_what_differs() -> None:
    state = ppo.open_state(ARGS)
    rollout, _ = ppo.collect(state, ARGS, SilentRecorder())
    objective = ppo.open_objective(state.agent, rollout, ARGS)
    params = {name: p.detach() for name, p in state.agent.named_parameters()}
    fits = Reference("task", params, rollout.obs, rollout.actions, rollout.advantages)
    fits.check_fits(rollout, objective)
    with pytest.raises(FilterError, match=r"'actor\.0\.weight' differs"):
        replace(fits, params=params | {"actor.0.weight": torch.ones(2, 2)}).check_fits(rollout, objective)
    with pytest.raises(FilterError, match="another shape"):
        replace(fits, obs=torch.ones(5, 3)).check_fits(rollout, objective)
