"""A plain command, a few lines of a shell or a Python script: offered as a job's start command."""

from __future__ import annotations

import ast
import json
import re
import warnings
from typing import Final

from jobs.dialects.shell_words import here_document_mark

LONGEST: Final = 16 * 1024
_MOST_LINES: Final = 200

_WORD: Final = re.compile(r"(?:[A-Za-z_]\w*=\S*[ \t]+)*(?P<program>[A-Za-z0-9_./~-]+)")
# fmt: off
_PROGRAMS: Final = frozenset({
    "accelerate", "bash", "bazel", "cargo", "cat", "cd", "chmod", "cmake", "conda", "cp", "curl", "date",
    "deepspeed", "do", "docker", "echo", "env", "exec", "export", "find", "for", "git", "go", "horovodrun",
    "if", "java", "julia", "jupyter", "ls", "make", "mkdir", "module", "mpiexec", "mpirun", "mv", "ninja",
    "node", "npm", "npx", "nsys", "nvidia-smi", "pip", "pip3", "pipenv", "poetry", "printf", "pwd",
    "pytest", "python", "python2", "python3", "R", "ray", "rm", "Rscript", "rsync", "scp", "set", "sh",
    "sleep", "source", "srun", "ssh", "sudo", "tar", "test", "time", "timeout", "torchrun", "touch",
    "uname", "unset", "uv", "wget", "while", "zsh",
})
# fmt: on
_PROSE: Final = re.compile(r"[.!?。？！]\s*$")
_IMPORTS: Final = re.compile(r"^(?:import|from)[ \t]+[A-Za-z_]", re.MULTILINE)


def start_command(text: str) -> str | None:
    """Return the command that `text` is; None where it is none, or anything that may be something else."""
    plain = text.strip("\ufeff \t\r\n").replace("\r\n", "\n")
    if not plain or len(plain) > LONGEST or plain.count("\n") >= _MOST_LINES or plain[0] in "{[<":
        return None
    if _is_python(plain):
        return _as_script(plain)
    lines = [line.removeprefix("$ ") for line in plain.split("\n")]
    first = next((line for line in lines if line.strip() and not line.lstrip().startswith("#")), "")
    return "\n".join(lines) if _is_command(first) else None


def job_file(command: str) -> str:
    """Return the job file of one replica that runs the command."""
    role = {"Type": "Worker", "PodCount": 1, "ResourceConfig": {"CPU": "1", "Memory": "2Gi"}}
    file = {
        "DisplayName": "new-job",
        "JobType": "PyTorchJob",
        "JobSpecs": [role],
        "UserCommand": command,
        "JobConsole": {"framework": None},
    }
    return json.dumps(file, indent=2, ensure_ascii=False) + "\n"


def _is_command(line: str) -> bool:
    """Return whether a line begins with a program that people train with, or a path to one."""
    found = _WORD.match(line)
    if found is None:
        return False
    program = found["program"]
    rest = line[found.end() :]
    if rest and not rest[0].isspace() and rest[0] not in ";&|<>":
        return False
    if "/" in program:
        return program.startswith(("./", "/", "~/")) or program.endswith((".sh", ".py"))
    return (program in _PROGRAMS or program.endswith((".sh", ".py"))) and not _PROSE.search(line)


def _is_python(text: str) -> bool:
    """Return whether it is a Python script: it imports something, and a parser takes it."""
    if not _IMPORTS.search(text):
        return False
    try:
        with warnings.catch_warnings(action="ignore"):
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _as_script(text: str) -> str:
    """Return a shell's command that hands the script to Python."""
    mark = here_document_mark(text)
    return f"python3 - <<'{mark}'\n{text}\n{mark}"
