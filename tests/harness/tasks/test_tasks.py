"""Tasks: every one's settings, and what a variation does to its identity."""

import pytest

from filters.errors import UsageError
from filters.registry import make
from harness.sweeps.plan import Sweep, pick_tasks
from harness.tasks.catalogue import SUITES, TASKS, find_suite, find_task


def test_every_suite_names_tasks_that_exist() -> None:
    assert all(task_id in TASKS for suite in SUITES.values() for task_id in suite)
    assert [task.id for task in find_suite("dtv")] == ["MiniGrid-Empty-8x8-dtv/v1", "MiniGrid-DoorKey-8x8/v1"]


@pytest.mark.parametrize(
    ("task_id", "rounds", "optimizer", "rate", "fraction"),
    [
        ("FrozenLake/v1", 50, "sgd", 5e-3, 0.5),
        ("Acrobot/v1", 50, "sgd", 5e-3, 0.5),
        ("MiniGrid-Empty-8x8/v3", 40, "sgd", 5e-3, 0.125),
        ("Highway/v1", 100, "sgd", 5e-3, 0.5),
        ("LunarLander/v2", 150, "sgd", 5e-3, 0.125),
        ("BipedalWalker/v1", 500, "adam", 3e-4, 0.0625),
        ("MiniGrid-Empty-8x8-adam/v3", 40, "adam", 3e-4, 0.125),
        ("LunarLander-adam/v2", 150, "adam", 1e-3, 0.125),
    ],
)
def test_settings_of_the_iif_paper(task_id: str, rounds: int, optimizer: str, rate: float, fraction: float) -> None:
    """The table of Hu et al. 2025, and the setup that its rows share."""
    task = TASKS[task_id]
    args = task.args
    assert (args.rounds, args.optimizer, args.learning_rate) == (rounds, optimizer, rate)
    assert (args.num_envs, args.num_steps, args.minibatch_size, args.update_epochs) == (1, 2048, 64, 10)
    assert (args.gamma, args.gae_lambda, args.clip_coef) == (0.99, 0.95, 0.2)
    assert (args.entropy_coef, args.value_coef, args.max_grad_norm) == (0.0, 0.5, 0.0)
    assert not args.anneal_lr
    assert not args.clip_value_loss
    assert args.hidden == (64, 64)
    assert make("iif", task.filter_defaults) == make(f"iif:fraction={fraction}")


@pytest.mark.parametrize(
    ("task_id", "steps", "rounds", "minibatch", "epochs", "optimizer", "rate", "entropy", "warmup"),
    [
        ("MiniGrid-Empty-8x8-dtv/v1", 128, 79, 64, 10, "sgd", 5e-3, 0.0, 0),
        ("MiniGrid-DoorKey-8x8/v1", 640, 98, 256, 4, "adam", 3e-4, 0.01, 5),
    ],
)
def test_settings_of_the_dtv_paper(
    task_id: str,
    steps: int,
    rounds: int,
    minibatch: int,
    epochs: int,
    optimizer: str,
    rate: float,
    entropy: float,
    warmup: int,
) -> None:
    """The table of Jia et al.; the last round is finished, so 160,000 steps are 79 rounds of 2,048."""
    task = TASKS[task_id]
    args = task.args
    assert (args.num_envs, args.num_steps, args.rounds) == (16, steps, rounds)
    assert (args.minibatch_size, args.update_epochs) == (minibatch, epochs)
    assert (args.optimizer, args.learning_rate, args.adam_eps) == (optimizer, rate, 1e-8)
    assert (args.entropy_coef, args.value_coef, args.max_grad_norm) == (entropy, 0.5, 0.5)
    assert args.hidden == ()
    for name in ("dtv", "dtv-loo", "iif"):
        assert make(name, task.filter_defaults) == make(f"{name}:warmup={warmup}")


def test_a_variation_is_part_of_the_identity() -> None:
    task = find_task("LunarLander")
    same = task.varied(env_backend="gymnasium", eval_episodes=0, eval_every=4)
    assert same == task
    fast = task.varied(env_backend="envpool", eval_episodes=1000, eval_every=1)
    assert fast.id == "LunarLander/v2@envpool@eval-1000-every-1"
    assert (fast.args.env_backend, fast.args.eval_episodes, fast.args.eval_every) == ("envpool", 1000, 1)
    assert fast != task
    assert fast.varied() == fast
    assert fast.varied().args == fast.args
    masked = task.varied(env_backend="gymnasium", apply="mask")
    assert (masked.id, masked.apply) == ("LunarLander/v2@mask", "mask")
    kept = task.varied(env_backend="gymnasium", checkpoint_every=20)
    assert (kept.id, kept.args.checkpoint_every) == ("LunarLander/v2@checkpoint-20", 20)


def test_references_lie_the_right_way_round() -> None:
    assert all(task.random < task.solved for task in TASKS.values())


def test_checkpoints_are_where_the_agent_evaluates() -> None:
    """Every eval_every rounds and after the last one; 500,000 steps in rounds of 512 are 977 rounds."""
    assert TASKS["smoke-MiniGrid/v1"].checkpoints == (256, 512)
    assert TASKS["LunarLander/v2"].checkpoints == (*range(8192, 150 * 2048, 8192), 150 * 2048)
    cartpole = TASKS["CartPole/v2"].checkpoints
    assert (len(cartpole), cartpole[0], cartpole[-2:]) == (49, 10240, (960 * 512, 977 * 512))


def test_returns_can_reach_both_references() -> None:
    for task in TASKS.values():
        low, high = task.returns
        assert low <= task.random < task.solved <= high, task.id
    assert TASKS["Pong/v1"].returns == (-21, 21)


@pytest.mark.parametrize("name", ["LunarLandr", "LunarLander/v9"])
def test_an_unknown_task_gets_near_misses(name: str) -> None:
    with pytest.raises(UsageError, match="did you mean 'LunarLander"):
        find_task(name)


@pytest.mark.parametrize("suite", SUITES)
def test_the_command_runs_a_suite_s_tasks_as_they_are(suite: str) -> None:
    """No option left at its default varies a task: suites hold tasks on both backends, with and without restarts."""
    tasks = pick_tasks(Sweep(suite=suite))
    assert [task.id for task in tasks] == list(SUITES[suite])
    assert [task.args for task in tasks] == [task.args for task in find_suite(suite)]
