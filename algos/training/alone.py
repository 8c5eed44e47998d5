"""What does an agent that runs alone, without the harness, print, write and go on from?"""

import inspect
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro
from numpy.typing import NDArray

from algos.training.checkpoint import FILE, CheckpointError, load, read_seconds, restore, save
from algos.training.clock import PHASES, Phase
from algos.training.recorder import Round, SilentRecorder
from algos.training.settings import settings_hash
from filters.registry import make


def make_command(train: Callable[..., Any], settings: type) -> Callable[..., None]:
    """What an agent does when it runs alone, as a function whose arguments are those of its command line.

    Args:
        train: the agent's own.
        settings: the class of its settings.
    """

    def main(args: Annotated[settings, tyro.conf.arg(name="")], filter: str = "none") -> None:  # type: ignore[valid-type]
        """Train one agent, print its evaluations and write TensorBoard events below runs/.

        With checkpoints, the same command goes on where an interrupted run made its last one.

        Args:
            args: settings.
            filter: filter spec, as in iif:fraction=0.25
        """
        chosen = make(filter)
        recorder = ConsoleRecorder(Path("runs") / "alone" / folder_name(train, args, filter), args)
        train(args, chosen, recorder)
        recorder.close()

    return main


def folder_name(train: Callable[..., Any], args: Any, filter: str) -> str:
    """Environment, agent, filter, seed, and the time; with checkpoints the settings instead, so a run can go on."""
    words = [args.env_id, Path(inspect.getfile(train)).stem, filter, args.seed]
    stamp = settings_hash(args) if args.checkpoint_every else int(time.time())
    return "__".join(str(word).replace("/", "-") for word in [*words, stamp])


class ConsoleRecorder(SilentRecorder):
    """What an agent that runs alone does: prints a line per evaluation and writes TensorBoard events."""

    def __init__(self, folder: Path, args: Any) -> None:
        super().__init__()
        from torch.utils.tensorboard import SummaryWriter  # costs a second at import, which workers need not pay

        self.folder, self.args = folder, args
        self.writer = SummaryWriter(str(folder))
        table = "\n".join(f"|{name}|{value}|" for name, value in vars(args).items())
        self.writer.add_text("hyperparameters", f"|param|value|\n|-|-|\n{table}")

    def round(self, report: Round) -> None:
        """Write the round's scalars."""
        for tag, value in report.scalars.items():
            self.writer.add_scalar(tag, value, report.step)
        speed = report.step / max(self.clock.training_seconds, 1e-9)
        self.writer.add_scalar("charts/SPS", speed, report.step)

    def evaluation(self, report: Round, *, returns: NDArray[np.float64], lengths: NDArray[np.int64]) -> None:
        """Print one line and write the mean return."""
        self.writer.add_scalar("evaluation/mean_return", float(returns.mean()), report.step)
        seconds = self.clock.training_seconds
        left = seconds / report.step * (report.step / (report.number + 1) * report.rounds - report.step)
        print(
            f"round {report.number + 1}/{report.rounds}  step {report.step:,}  return {returns.mean():.2f} "
            f"(n = {len(returns)})  kept {report.kept:.1%}  {report.step / seconds:,.0f} steps/s  {left:.0f} s left",
            flush=True,
        )

    def checkpoint(self, state: Any) -> None:
        """Keep the state in the folder of the events."""
        seconds = {name: self.clock.seconds[name] for name in PHASES}
        save(self.folder / FILE, state, {"settings": settings_hash(self.args), "seconds": seconds})

    def resume(self, state: Any) -> None:
        """Go on from the folder's checkpoint if it is of these settings, and say so."""
        path = self.folder / FILE
        if not path.exists():
            return
        try:
            content = load(path, state)
            seconds = self._seconds_of(content)
            restore(state, content)
        except CheckpointError as error:
            print(f"starting over: {error}", file=sys.stderr)
            return
        for name in PHASES:
            self.clock.seconds[name] += seconds[name]
        self.writer.close()
        self.writer = type(self.writer)(str(self.folder), purge_step=state.round * self.args.batch_size + 1)
        print(f"going on after round {state.round}/{self.args.rounds}", flush=True)

    def _seconds_of(self, content: dict[str, Any]) -> dict[Phase, float]:
        extra = content.get("extra")
        if not isinstance(extra, dict) or extra.get("settings") != settings_hash(self.args):
            raise CheckpointError(f"{self.folder / FILE} was made with other settings")
        return read_seconds(extra.get("seconds"))

    def close(self) -> None:
        """Flush and close the event file; the run is complete and its checkpoint goes."""
        self.writer.close()
        (self.folder / FILE).unlink(missing_ok=True)
