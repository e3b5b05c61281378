"""Calls of Slurm's programs and of environment modules in a job's command."""

from __future__ import annotations

import time

import pytest

from jobs.submission.checks import shell_commands


@pytest.mark.parametrize(
    "command",
    [
        "srun python train.py",
        "cd code && srun -n 4 python train.py",
        "export A=1\nOMP_NUM_THREADS=4 srun --mpi=pmix ./a.out",
        "for i in 1 2; do srun hostname; done",
        "time srun true",
        "nodes=$(scontrol show hostnames)",
        "srun",
    ],
)
def test_slurm_call_in_command_position_is_found(command: str) -> None:
    assert shell_commands.slurm_call(command) is not None


@pytest.mark.parametrize(
    "command",
    [
        "echo srun is not here",
        "# srun python train.py\npython3 train.py",
        "python3 train.py  # then srun it",
        "python3 srun.py",
        "./srun-wrapper",
        "if command -v srun > /dev/null; then srun python3 x.py; else python3 x.py; fi",
        'srun() { "$@"; }\nsrun python3 x.py',
    ],
)
def test_slurm_call_elsewhere_or_prepared_for_is_none(command: str) -> None:
    assert shell_commands.slurm_call(command) is None


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        ("srun python3 train.py --lr 1", "python3 train.py --lr 1"),
        ("srun -n 1 --mpi=pmix python3 train.py", "python3 train.py"),
        ("cd code && srun --ntasks=1 \\\n  python3 train.py", "cd code && python3 train.py"),
        ("A=1 srun python3 x.py\nsrun -u python3 y.py", "A=1 python3 x.py\npython3 y.py"),
    ],
)
def test_without_srun_starts_program_directly(command: str, wanted: str) -> None:
    assert shell_commands.without_srun(command) == wanted


@pytest.mark.parametrize("command", ["sbatch other.sh", "scontrol show job && srun true", "true"])
def test_without_srun_leaving_a_call_or_changing_nothing_is_none(command: str) -> None:
    assert shell_commands.without_srun(command) is None


@pytest.mark.parametrize(
    "command", ["module load cuda/12.4\npython3 x.py", "module purge; true", "ml cuda/12"]
)
def test_module_call_is_found(command: str) -> None:
    assert shell_commands.module_call(command) is not None


@pytest.mark.parametrize(
    "command",
    ["python3 -m module load", ". /opt/lmod/init/bash\nmodule load x", "echo module load", "mlflow ui"],
)
def test_module_call_elsewhere_or_brought_along_is_none(command: str) -> None:
    assert shell_commands.module_call(command) is None


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        ("module load cuda/12.4\npython3 x.py", "python3 x.py"),
        ("module load a && module load b; python3 x.py", "python3 x.py"),
        ("set -e\n  module purge\npython3 x.py\n", "set -e\npython3 x.py\n"),
        ("module load a", None),
    ],
)
def test_without_modules_drops_module_loading(command: str, wanted: str | None) -> None:
    assert shell_commands.without_modules(command) == wanted


@pytest.mark.parametrize(
    "text", ["\n", " ", ";", "a=", "do ", "srun -n ", "module ", "A=1 ", "(", "#", "srun -a=b "]
)
def test_hostile_command_is_read_in_linear_time(text: str) -> None:
    command = text * (200_000 // len(text))
    began = time.process_time()
    shell_commands.slurm_call(command)
    shell_commands.module_call(command)
    shell_commands.without_srun(command)
    shell_commands.without_modules(command)
    assert time.process_time() - began < 2
