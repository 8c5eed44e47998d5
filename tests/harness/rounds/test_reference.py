"""IIF against a fixed reference: made by a command, used by a spec, refused where it does not fit."""

import os
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch

from algos import ppo
from algos.training.recorder import SilentRecorder
from filters.errors import FilterError, UsageError, run_command
from filters.gradients.reference import Reference, load
from filters.iif import IIF
from filters.registry import make
from harness import reference, run

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


@pytest.fixture(scope="module")
def swept(file: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A sweep with the reference, on its own task and on one of another network: the folder, and the command."""
    out = tmp_path_factory.mktemp("swept")
    words = ["--task", "smoke-FrozenLake", "smoke-MiniGrid", "--seeds", "1", "--jobs", "1", "--out", str(out)]
    return out, python("-m", "harness.run", "--filter", "iif", f"iif:reference={file}", *words)


def test_a_run_takes_the_reference(swept: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    lake = swept[0] / "smoke-FrozenLake-v1"
    assert len(list(lake.rglob("run.json"))) == 3, swept[1].stdout + swept[1].stderr
    assert not list(lake.rglob("failure.json"))


def test_a_reference_of_another_architecture_is_a_failed_cell(
    swept: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    out, done = swept
    assert done.returncode == 1
    assert len(list((out / "smoke-MiniGrid-v1").rglob("run.json"))) == 2
    assert len(list(out.rglob("failure.json"))) == 1
    assert "trained on smoke-FrozenLake/v1 with another architecture" in " ".join(done.stdout.split())
    assert "Traceback" not in done.stdout + done.stderr


def test_another_file_under_the_same_name_is_another_setting(file: Path, tmp_path: Path) -> None:
    mine = tmp_path / "a.ref"
    mine.write_bytes(file.read_bytes())
    words = ["--filter", f"random-matched:of=iif:reference={mine}", "--no-baseline", "--task", "smoke-FrozenLake"]
    words += ["--seeds", "1", "--out", str(tmp_path / "runs"), "--quiet"]
    assert run.main(words) == 0
    assert run.main(words) == 0
    replace(load(str(mine)), task="another").save(mine)
    with pytest.raises(UsageError, match=r"other settings \(filter_files differ\)"):
        run.main(words)


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


def test_bad_input_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, sentence in (
        (["--task", "FrozenLak", "--file", str(tmp_path / "x")], "did you mean 'FrozenLake/v1'"),
        (["--task", "smoke-FrozenLake", "--file", str(tmp_path / "no" / "x")], "does not exist"),
    ):
        assert run_command(partial(reference.main, words)) == 2
        assert sentence in capsys.readouterr().err


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
