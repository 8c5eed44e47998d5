"""What of a run is kept in its midst, so that it ends as if it had never been interrupted?

Environments can't be kept in general: an emulator's or an engine's state has no portable form, and a pickle could
execute anything. So a run with checkpoints starts all its environments anew at every checkpoint round, interrupted or
not, with seeds that depend on the run's seed and the round alone. Everything else is kept: network, optimizer, every
random stream. A checkpoint holds tensors, numbers and text, and is never unpickled.
"""

import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from algos.training.clock import PHASES, Phase
from algos.training.compiled import open_optimizer_state
from algos.training.state import AgentState

FORMAT = "filtergym-checkpoint-1"
FILE = "checkpoint.pt"

Content = dict[str, Any]


class CheckpointError(Exception):
    """A checkpoint is damaged or of another run; the sentence says which."""


def snapshot(state: AgentState) -> Content:
    """All that `restore` needs; the tensors are the state's own, not copies."""
    return {
        "format": FORMAT,
        "round": state.round,
        "compiled": state.calls.compiled,
        "agent": dict(state.agent.state_dict()),
        "moments": moments(state.optimizer),
        "rngs": {name: rng.get_state() for name, rng in state.rngs.items()},
        "eval_seeds": json.dumps(state.eval_seeds.bit_generator.state),
    }


def moments(optimizer: torch.optim.Optimizer) -> list[dict[str, Tensor]]:
    """The optimizer's state of every parameter, in their order; empty before its first step."""
    return [dict(optimizer.state[param]) for group in optimizer.param_groups for param in group["params"]]


def save(path: Path, state: AgentState, extra: dict[str, Any]) -> None:
    """Write a checkpoint durably: after a crash there is the one before or the whole new one.

    Args:
        path: the file.
        state: what the agent's `train` carries from round to round.
        extra: plain containers of numbers and text to keep with it.

    Raises:
        OSError: if it can't be written; the checkpoint before stays.
    """
    buffer = io.BytesIO()  # so that a full disk is an OSError, which torch would turn into an error of its own
    torch.save(snapshot(state) | {"extra": extra}, buffer)
    partial = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with partial.open("wb") as file:
            file.write(buffer.getbuffer())
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where the system lets a folder be opened."""
    if os.name == "posix":
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def load(path: Path, state: AgentState) -> Content:
    """Read a checkpoint of a state like this one; nothing in the file is executed and nothing is changed.

    Raises:
        CheckpointError: it is damaged, or not made by `save`.
    """
    room = io.BytesIO()
    torch.save(snapshot(state), room)
    try:
        # Adam's moments are not there before its first step; what is far beyond that is not ours, and not read.
        if path.stat().st_size > 4 * room.tell() + 2**20:
            raise CheckpointError(f"{path} is too large for a checkpoint of this run")
        content = read(path.read_bytes())
    except CheckpointError:
        raise
    except Exception as error:  # torch and zipfile raise many kinds for a file that is not theirs
        raise CheckpointError(f"{path} is damaged or no checkpoint") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise CheckpointError(f"{path} is no checkpoint of this version")
    return content


def read(content: bytes) -> Any:
    """The tensors, numbers and text of a checkpoint; raises many kinds of errors unless it is whole."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        # torch.save never compresses, so nothing grows while it is read; torch.load does not look at checksums.
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in archive.infolist()):
            raise ValueError("compressed")
        if archive.testzip() is not None:
            raise ValueError("checksum")
    return torch.load(io.BytesIO(content), weights_only=True, map_location="cpu")


def restore(state: AgentState, content: Content) -> None:
    """Put what was loaded into a state that `open_state` made, in place: a compiled step holds on to its tensors.

    Raises:
        CheckpointError: it does not fit; the state is then as it was.
    """
    try:
        number = content["round"]
        if type(number) is not int or number < 1 or content["compiled"] is not state.calls.compiled:
            raise ValueError("round or compiled")
        kept = content["moments"]
        if any(kept) and not any(moments(state.optimizer)):
            open_optimizer_state(state.optimizer)
        pairs = paired(state.agent.state_dict(), content["agent"])
        for own, saved in zip(moments(state.optimizer), kept, strict=True):
            pairs += paired(own, saved)
        rngs = {name: torch.Generator(rng.device) for name, rng in state.rngs.items()}
        for name, rng in rngs.items():
            rng.set_state(content["rngs"][name])
        eval_seeds = np.random.default_rng(0)
        eval_seeds.bit_generator.state = json.loads(content["eval_seeds"])
    except Exception as error:  # whatever a crafted file may make the lines above raise
        raise CheckpointError("the checkpoint is of another network, optimizer, device or way to compile") from error
    with torch.no_grad():
        for mine, theirs in pairs:
            mine.copy_(theirs)
    state.rngs, state.eval_seeds, state.round = rngs, eval_seeds, number


def read_seconds(kept: Any) -> dict[Phase, float]:
    """The clock's seconds from a checkpoint; raises CheckpointError unless each phase has a finite number."""
    if not isinstance(kept, dict) or any(
        type(kept.get(name)) is not float or not 0 <= kept[name] < np.inf for name in PHASES
    ):
        raise CheckpointError("the checkpoint has no valid times")
    return {name: kept[name] for name in PHASES}


def paired(mine: dict[str, Tensor], theirs: dict[str, Tensor]) -> list[tuple[Tensor, Tensor]]:
    """The tensors of the same name; raises ValueError unless names, shapes and dtypes agree."""
    if list(mine) != list(theirs):
        raise ValueError("names")
    if any(mine[name].shape != theirs[name].shape or mine[name].dtype != theirs[name].dtype for name in mine):
        raise ValueError("shapes")
    # Copied here already, so that a tensor that can't be is found before anything is changed.
    return [(mine[name], torch.empty_like(mine[name]).copy_(theirs[name])) for name in mine]
