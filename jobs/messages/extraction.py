"""Sentences about texts that hold a job file without being one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.messages.sentences import mark as _

NOTES: Final[Mapping[str, tuple[str, ...]]] = {
    "read_from_curl": (_("Detected a curl command; its JSON body is the job file. Nothing was sent."),),
    "read_from_docker": (
        _("Detected a container command; it was read as a job of one replica. Nothing was run."),
    ),
    "read_from_http": (_("Detected an HTTP request; its JSON body is the job file."),),
    "read_from_kubernetes_job": (
        _(
            "Detected a Kubernetes Job (batch/v1); it was read as a PyTorchJob with one role, whose replicas "
            "are its pods."
        ),
    ),
    "read_from_markdown": (_("Detected a job file in a Markdown code block."),),
    "read_from_python": (_("Detected a Python program with an SDK call. Nothing was run."),),
    "read_from_python_dict": (_("Detected a Python dict. Nothing was run."),),
    "amounts_assumed": (
        _("The command names no CPU or memory limit; 1 CPU and 2 GiB were taken for what is missing."),
    ),
    "completions_ignored": (
        _("completions is %(count)s; the job has as many replicas as parallelism says, each runs once."),
        _("completions was ignored; the job has as many replicas as parallelism says."),
    ),
    "flag_left_out": (_("%(flag)s has no meaning for a job and was left out."),),
    "gpus_taken_as_one": (_("--gpus %(value)s does not say how many GPUs; one was taken."),),
    "image_decides_command": (
        _("What the image would run is not known here: write the command behind the image."),
    ),
    "key_left_out": (_("%(key)s has no meaning here and was left out."),),
    "value_not_in_text": (
        _("%(key)s was left out: the value of %(value)s is not in the text."),
        _("A value was left out: %(value)s is not in the text."),
    ),
    "variable_left_out": (_("The value of the variable %(name)s is not in the command; it was left out."),),
}
