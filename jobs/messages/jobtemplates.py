"""The shipped job templates in words: their titles, what they are for, what their questions are called."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext

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
    "jobs": _("Jobs whose folders it shows"),
}
"""What a parameter of that name is called."""


def template_words(text: str) -> str:
    """A template's title, or what it is for; one of the shipped ones in the reader's language."""
    return gettext(text) if text in WORDS else text


def question(name: str) -> str:
    """What a parameter is called."""
    return gettext(QUESTIONS[name]) if name in QUESTIONS else name
