"""An interrupted run ends as if it had not been, and a checkpoint that is not ours is never taken for it."""

import pickle
import zipfile
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from algos import ppo, ppo_atari, ppo_continuous, ppo_minigrid
from algos.training.alone import ConsoleRecorder
from algos.training.checkpoint import FILE, CheckpointError, load, restore, save
from algos.training.compiled import has_compiler
from algos.training.recorder import Round, SilentRecorder
from filters.errors import UsageError
from filters.registry import make

SHORT: dict[str, Any] = {
    "num_envs": 2,
    "num_steps": 32,
    "minibatch_size": 32,
    "update_epochs": 2,
    "total_steps": 320,
    "eval_every": 2,
    "eval_episodes": 2,
    "checkpoint_every": 2,
}
MLP = ppo.Args(**SHORT)
RUNS: dict[str, tuple[ModuleType, Any]] = {
    "ppo": (ppo, MLP),
    "ppo with SGD": (ppo, replace(MLP, optimizer="sgd", env_id="Acrobot-v1", env_kwargs={"max_episode_steps": 50})),
    "ppo_continuous": (
        ppo_continuous,
        # Its engine keeps one world over all episodes.
        ppo_continuous.Args(**SHORT, env_id="BipedalWalker-v3", env_kwargs={"max_episode_steps": 20}),
    ),
    "ppo_minigrid": (ppo_minigrid, ppo_minigrid.Args(**SHORT, env_id="MiniGrid-Empty-5x5-v0")),
    "ppo_minigrid on EnvPool": (
        ppo_minigrid,
        ppo_minigrid.Args(**SHORT, env_id="MiniGrid-Empty-5x5-v0", env_backend="envpool"),
    ),
    "ppo_atari": (
        ppo_atari,
        ppo_atari.Args(
            **(SHORT | {"num_steps": 16, "minibatch_size": 16, "total_steps": 160, "eval_episodes": 1}),
            env_kwargs={"max_num_frames_per_episode": 400},
        ),
    ),
    "ppo compiled": (ppo, replace(MLP, compile="on")),
}
SLOW = ("ppo_atari", "ppo compiled")
"""interrupted once only"""


class InterruptedRunError(Exception):
    """As if the process had been killed."""


class FileRecorder(SilentRecorder):
    """Keeps the state in a file and stops after some round."""

    def __init__(self, path: Path, stop: int | None = None) -> None:
        super().__init__()
        self.path, self.stop = path, stop
        self.resumed_at: int | None = None

    def checkpoint(self, state: Any) -> None:
        save(self.path, state, {})

    def resume(self, state: Any) -> None:
        if self.path.exists():
            restore(state, load(self.path, state))
            self.resumed_at = state.round

    def round(self, report: Round) -> None:
        super().round(report)
        if report.number + 1 == self.stop:
            raise InterruptedRunError


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def outcome(recorder: SilentRecorder) -> dict[int, tuple[Any, ...]]:
    return {
        report.number: (report.step, report.kept, report.optimizer_steps, report.losses, report.train_return)
        for report in recorder.rounds
    }


def weights(agent: torch.nn.Module) -> bytes:
    return b"".join(tensor.detach().numpy().tobytes() for tensor in agent.state_dict().values())


@pytest.mark.parametrize("name", RUNS)
def test_an_interrupted_run_ends_byte_for_byte_like_an_undisturbed_one(tmp_path: Path, name: str) -> None:
    if name == "ppo compiled" and not has_compiler():
        pytest.skip("needs a C++ compiler and Python's headers")
    module, args = RUNS[name]
    undisturbed = FileRecorder(tmp_path / "undisturbed.pt")
    expected = module.train(args, make("random:fraction=0.25"), undisturbed)

    rounds: dict[int, tuple[Any, ...]] = {}
    stops = [(1, None), (3, None), (4, 2)]  # before the first checkpoint, after it, and before the second
    for stop, start in stops[1:2] if name in SLOW else stops:
        recorder = FileRecorder(tmp_path / FILE, stop)
        with pytest.raises(InterruptedRunError):
            module.train(args, make("random:fraction=0.25"), recorder)
        assert recorder.resumed_at == start
        rounds |= outcome(recorder)
    last = FileRecorder(tmp_path / FILE)
    agent = module.train(args, make("random:fraction=0.25"), last)
    rounds |= outcome(last)
    assert last.resumed_at == 2
    assert weights(agent) == weights(expected)
    assert rounds == outcome(undisturbed)
    assert len(rounds) == 5
    assert np.array_equal(
        last.returns, undisturbed.returns[1:]
    )  # those of rounds 4 and 5; round 2 was evaluated before
    assert last.compiled == undisturbed.compiled == (name == "ppo compiled")


def test_environments_start_anew_at_checkpoints_and_only_there() -> None:
    runs = [SilentRecorder(), SilentRecorder()]
    for every, recorder in zip((0, 2), runs, strict=True):
        ppo.train(replace(MLP, checkpoint_every=every), make("none"), recorder)
    without, having = (outcome(recorder) for recorder in runs)
    assert [without[i] == having[i] for i in range(5)] == [True, True, False, False, False]

    state = ppo.open_state(MLP)
    seen = [state.obs]
    for state.round in (2, 4, 2):
        ppo.collect(state, MLP, SilentRecorder())
        state.restart(MLP)
        assert not state.episode_returns.any()
        seen.append(state.obs)
    assert np.array_equal(seen[1], seen[3])
    assert not any(np.array_equal(seen[i], seen[j]) for i, j in ((0, 1), (0, 2), (1, 2)))


def kept(path: Path) -> Any:
    """A state with a checkpoint in `path`, one update after its start."""
    state = ppo.open_state(MLP)
    rollout, _ = ppo.collect(state, MLP, SilentRecorder())
    ppo.update(state, rollout, make("none").select(rollout, None), "repack", MLP)  # type: ignore[arg-type]
    state.round = 2
    save(path, state, {"note": "mine"})
    return state


def test_what_is_restored_is_what_was_kept(tmp_path: Path) -> None:
    state = kept(tmp_path / FILE)
    fresh = ppo.open_state(MLP)
    parameters = list(fresh.agent.parameters())
    content = load(tmp_path / FILE, fresh)
    restore(fresh, content)
    assert content["extra"] == {"note": "mine"}
    assert all(one is other for one, other in zip(parameters, fresh.agent.parameters(), strict=True))
    assert weights(fresh.agent) == weights(state.agent)
    assert fresh.optimizer.state_dict()["state"].keys() == state.optimizer.state_dict()["state"].keys()
    assert all(
        torch.equal(fresh.optimizer.state[one][key], state.optimizer.state[other][key])
        for one, other in zip(fresh.agent.parameters(), state.agent.parameters(), strict=True)
        for key in ("step", "exp_avg", "exp_avg_sq")
    )
    assert [torch.rand(3, generator=rng).tolist() for rng in fresh.rngs.values()] == [
        torch.rand(3, generator=rng).tolist() for rng in state.rngs.values()
    ]
    assert fresh.eval_seeds.integers(2**31, size=5).tolist() == state.eval_seeds.integers(2**31, size=5).tolist()


class Trap:
    """Executes something wherever it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.mark,)


def flip(path: Path, where: int) -> None:
    """Change one bit of a tensor's data, which torch itself would not notice."""
    with zipfile.ZipFile(path) as archive:
        entry = next(entry for entry in archive.infolist() if entry.filename.endswith("data/0"))
    content = bytearray(path.read_bytes())
    content[entry.header_offset + 200 + where] ^= 1
    path.write_bytes(content)


def compress(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)


BROKEN: dict[str, Any] = {
    "empty": lambda path, mark: path.write_bytes(b""),
    "truncated": lambda path, mark: path.write_bytes(path.read_bytes()[:-300]),
    "one bit": lambda path, mark: flip(path, 8),
    "text": lambda path, mark: path.write_text("{}"),
    "compressed": lambda path, mark: compress(path),
    "too large": lambda path, mark: path.write_bytes(path.read_bytes() + bytes(2**23)),
    "pickle": lambda path, mark: path.write_bytes(pickle.dumps(Trap(mark))),
    "pickle in torch's format": lambda path, mark: torch.save({"format": Trap(mark)}, path),
    "something else of torch": lambda path, mark: torch.save({"weights": torch.zeros(3)}, path),
    "a folder": lambda path, mark: (path.unlink(), path.mkdir()),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_checkpoint_is_refused_and_nothing_in_it_runs(tmp_path: Path, how: str) -> None:
    path, mark = tmp_path / FILE, tmp_path / "executed"
    kept(path)
    fresh = ppo.open_state(MLP)
    before = weights(fresh.agent)
    BROKEN[how](path, mark)
    with pytest.raises(CheckpointError):
        restore(fresh, load(path, fresh))
    assert not mark.exists()
    assert weights(fresh.agent) == before
    assert fresh.round == 0


def test_the_trap_works(tmp_path: Path) -> None:
    """Unpickled, it leaves its mark; else the test above could not fail."""
    pickle.loads(pickle.dumps(Trap(tmp_path / "executed")))
    assert (tmp_path / "executed").exists()


CHANGES: dict[str, Any] = {
    "round": lambda content: content | {"round": -1},
    "round as a tensor": lambda content: content | {"round": torch.ones(())},
    "compiled": lambda content: content | {"compiled": True},
    "a name": lambda content: content | {"agent": {f"x{name}": t for name, t in content["agent"].items()}},
    "a shape": lambda content: content | {"agent": {name: t.unsqueeze(0) for name, t in content["agent"].items()}},
    "a dtype": lambda content: content | {"agent": {name: t.double() for name, t in content["agent"].items()}},
    "no data": lambda content: content | {"agent": {name: t.to("meta") for name, t in content["agent"].items()}},
    "no tensor": lambda content: content | {"agent": dict.fromkeys(content["agent"], 1.0)},
    "moments": lambda content: content | {"moments": content["moments"][1:]},
    "a stream": lambda content: content | {"rngs": {"action": content["rngs"]["action"]}},
    "a stream's length": lambda content: content | {"rngs": {name: r[:9] for name, r in content["rngs"].items()}},
    "evaluation seeds": lambda content: content | {"eval_seeds": "{}"},
    "a key": lambda content: {key: content[key] for key in ("format", "round")},
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_checkpoint_that_does_not_fit_leaves_the_state_as_it_was(tmp_path: Path, what: str) -> None:
    kept(tmp_path / FILE)
    fresh = ppo.open_state(MLP)
    before, draws = weights(fresh.agent), [rng.get_state() for rng in fresh.rngs.values()]
    content = CHANGES[what](load(tmp_path / FILE, fresh))
    with pytest.raises(CheckpointError):
        restore(fresh, content)
    assert weights(fresh.agent) == before
    assert fresh.round == 0
    assert all(torch.equal(rng.get_state(), draw) for rng, draw in zip(fresh.rngs.values(), draws, strict=True))


def test_a_checkpoint_that_can_t_be_written_leaves_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = kept(tmp_path / FILE)
    before = (tmp_path / FILE).read_bytes()

    def full(_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("algos.training.checkpoint.os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save(tmp_path / FILE, state, {})
    assert [path.name for path in tmp_path.iterdir()] == [FILE]
    assert (tmp_path / FILE).read_bytes() == before


class Stopping(ConsoleRecorder):
    """Runs alone and stops after three rounds."""

    def round(self, report: Round) -> None:
        super().round(report)
        if report.number == 2:
            self.writer.close()
            raise InterruptedRunError


def test_an_agent_alone_goes_on_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = ppo.train(MLP, make("none"), SilentRecorder())
    with pytest.raises(InterruptedRunError):
        ppo.train(MLP, make("none"), Stopping(tmp_path, MLP))
    recorder = ConsoleRecorder(tmp_path, MLP)
    agent = ppo.train(MLP, make("none"), recorder)
    recorder.close()
    assert "going on after round 2/5" in capsys.readouterr().out
    assert weights(agent) == weights(expected)
    assert not (tmp_path / FILE).exists()


def test_an_agent_alone_with_other_settings_starts_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InterruptedRunError):
        ppo.train(MLP, make("none"), Stopping(tmp_path, MLP))
    other = replace(MLP, gamma=0.9)
    recorder = ConsoleRecorder(tmp_path, other)
    agent = ppo.train(other, make("none"), recorder)
    recorder.close()
    assert "starting over" in capsys.readouterr().err
    assert weights(agent) == weights(ppo.train(other, make("none"), SilentRecorder()))


def test_a_negative_number_of_rounds_is_explained() -> None:
    with pytest.raises(UsageError, match="checkpoint_every must be 0 or more"):
        ppo.Args(checkpoint_every=-1)
