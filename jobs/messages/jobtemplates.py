"""The shipped job templates in words: their titles, what they are for, what their questions are called."""

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
"""What the shipped templates say, for translators."""

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
"""What a parameter of that name is called."""


def template_words(text: str) -> str:
    """A template's title, or what it is for; one of the shipped ones in the reader's language."""
    return gettext(text) if text in WORDS else text


def question(name: str) -> str:
    """What a parameter is called."""
    return gettext(QUESTIONS[name]) if name in QUESTIONS else name
