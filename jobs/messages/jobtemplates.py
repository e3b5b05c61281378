"""Built-in job templates in words: titles, descriptions and questions."""

from __future__ import annotations

from typing import Final

from jobs.language import gettext
from jobs.messages.sentences import mark as _

WORDS: Final = frozenset(
    {
        _("JupyterLab"),
        _("Notebooks, a file browser and terminals in the browser."),
        _("Jupyter Notebook"),
        _("The classic notebook interface."),
        _("VS Code"),
        _("VS Code in the browser (openvscode-server or code-server)."),
        _("TensorBoard"),
        _("Metrics, images and graphs of your jobs, live while they run."),
        _("Shell"),
        _("A shell with reserved GPUs."),
        _("HelloWorld"),
        _("The first job of the SCM manual: prints a greeting and the assigned GPUs."),
        _("PyTorch DDP"),
        _(
            "Distributed training with a master and workers (NCCL on GPUs, Gloo on CPUs). The "
            "default command runs a small all-reduce."
        ),
        _("TensorFlow with parameter servers"),
        _("Distributed training with a chief, workers and parameter servers, connected through TF_CONFIG."),
        _("MPI"),
        _(
            "A program in multiple processes, started by mpirun on all nodes. The default command "
            "prints each process's rank."
        ),
        _("Ray"),
        _(
            "A Ray cluster: a head that runs the program, and workers. The default command lists "
            "the cluster's resources."
        ),
        _("Sweep"),
        _(
            "A command that reads its parameters from variables. Runs once by default; start it as "
            "a sweep to run a grid or list of values."
        ),
    }
)
"""Texts of the built-in templates, for translators."""

QUESTIONS: Final = {
    "name": _("Name"),
    "hours": _("Time limit"),
    "idle_hours": _("Shut down when idle for"),
    "gpus": _("GPUs"),
    "gpu_type": _("GPU type"),
    "cpus": _("CPU"),
    "memory": _("Memory"),
    "image": _("Image"),
    "folder": _("Folder"),
    "train": _("Script and arguments"),
    "program": _("Program and arguments"),
    "processes": _("Processes"),
    "nodes": _("Nodes"),
    "workers": _("Workers"),
    "servers": _("Parameter servers"),
    "command": _("Start command"),
    "learning_rate": _("Learning rate"),
    "batch_size": _("Batch size"),
    "seed": _("Seed"),
    "jobs": _("Jobs to display"),
}
"""Labels of parameters, by their names."""


def template_words(text: str) -> str:
    """Return a template's title or description; a built-in one's in the reader's language."""
    return gettext(text) if text in WORDS else text


def question(name: str) -> str:
    """Return a parameter's label."""
    return gettext(QUESTIONS[name]) if name in QUESTIONS else name
