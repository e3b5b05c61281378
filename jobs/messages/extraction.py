"""Sentences about texts that hold a job file without being one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.messages.sentences import mark as _

NOTES: Final[Mapping[str, tuple[str, ...]]] = {
    "read_from_curl": (_("Detected a curl command; its JSON body is the job file. Nothing was sent."),),
    "read_from_docker": (
        _("Detected a container command, read as a job with one replica. Nothing was run."),
    ),
    "read_from_http": (_("Detected an HTTP request; its JSON body is the job file."),),
    "read_from_kubernetes_job": (
        _("Detected a Kubernetes Job (batch/v1), read as a PyTorchJob with one role; each pod is a replica."),
    ),
    "read_from_markdown": (_("Detected a job file in a Markdown code block."),),
    "read_from_python": (_("Detected a Python program with an SDK call. Nothing was run."),),
    "read_from_python_dict": (_("Detected a Python dict. Nothing was run."),),
    "amounts_assumed": (_("The command has no CPU or memory limit. Defaults used: 1 CPU, 2 GiB."),),
    "completions_ignored": (
        _("completions is %(count)s; the number of replicas is taken from parallelism, and each runs once."),
        _("completions ignored; the number of replicas is taken from parallelism."),
    ),
    "flag_left_out": (_("%(flag)s does not apply to jobs and was omitted."),),
    "gpus_taken_as_one": (_("--gpus %(value)s doesn't specify a number of GPUs; 1 is used."),),
    "image_decides_command": (_("The image's default command is unknown. Add a command after the image."),),
    "key_left_out": (_("%(key)s is not supported here and was omitted."),),
    "value_not_in_text": (
        _("%(key)s omitted: the value of %(value)s is not in the text."),
        _("Value omitted: %(value)s is not in the text."),
    ),
    "variable_left_out": (_("Variable %(name)s omitted: its value is not in the command."),),
}
