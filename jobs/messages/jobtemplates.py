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
        _("Notebooks one by one, as Jupyter had them before JupyterLab."),
        _("VS Code"),
        _("The editor in the browser, by openvscode-server or else code-server."),
        _("TensorBoard"),
        _("Curves, images and graphs that your jobs have written, also while they run."),
        _("Shell"),
        _("A terminal beside GPUs that are yours for so many hours."),
        _("HelloWorld"),
        _("The first job of the SCM manual: it greets, and shows the GPUs that it was given."),
        _("PyTorch DDP"),
        _(
            "A master and workers that train together: with NCCL between GPUs, with Gloo without. "
            "As it stands it adds up a number of each."
        ),
        _("TensorFlow with parameter servers"),
        _(
            "A chief that trains, workers that compute and servers that hold the parameters, "
            "told of each other by TF_CONFIG."
        ),
        _("MPI"),
        _(
            "One program in many processes, started by mpirun on one node. "
            "As it stands each process says which it is."
        ),
        _("Ray"),
        _(
            "A head that runs the program and workers that join it. "
            "As it stands it lists what the cluster has."
        ),
        _("Sweep"),
        _(
            "A command that takes what is tried from variables: one try as it stands, "
            "many when it is started over a grid or a list."
        ),
    }
)
"""Texts of the built-in templates, for translators."""

QUESTIONS: Final = {
    "name": _("Name"),
    "hours": _("For how long"),
    "idle_hours": _("End when nobody uses it for"),
    "gpus": _("GPUs"),
    "gpu_type": _("Type of GPU"),
    "cpus": _("CPU"),
    "memory": _("Memory"),
    "image": _("Image"),
    "folder": _("Folder"),
    "train": _("Script and its arguments"),
    "program": _("Program and its arguments"),
    "processes": _("Processes"),
    "workers": _("Workers"),
    "servers": _("Parameter servers"),
    "command": _("Start command"),
    "learning_rate": _("Learning rate"),
    "batch_size": _("Batch size"),
    "seed": _("Seed"),
    "jobs": _("Jobs whose folders it shows"),
}
"""Labels of parameters, by their names."""


def template_words(text: str) -> str:
    """Return a template's title or description; a built-in one's in the reader's language."""
    return gettext(text) if text in WORDS else text


def question(name: str) -> str:
    """Return a parameter's label."""
    return gettext(QUESTIONS[name]) if name in QUESTIONS else name
