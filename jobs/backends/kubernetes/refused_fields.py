"""Fields of a job that stand behind the fields of a pod which the API server refuses."""

from __future__ import annotations

import re
from typing import Final

_POINTERS: Final = (
    (r"spec\.containers\[0\]\.image", "/roles/{role}/image"),
    (r"spec\.containers\[0\]\.resources\.\w+\[?\.?cpu", "/roles/{role}/resources/cpu_milli"),
    (r"spec\.containers\[0\]\.resources\.\w+\[?\.?memory", "/roles/{role}/resources/memory_mib"),
    (r"spec\.containers\[0\]\.resources\.\w+\[?\.?ephemeral-storage", "/roles/{role}/resources/disk_mib"),
    (r"spec\.containers\[0\]\.resources\.\w+\[", "/roles/{role}/resources/gpus"),
    (r"spec\.containers\[0\]\.resources", "/roles/{role}/resources"),
    (r"spec\.containers\[0\]\.(?:env|envFrom)\b", "/env"),
    (r"spec\.containers\[0\]\.(?:ports|readinessProbe)", "/roles/{role}/ports"),
    (r"spec\.containers\[0\]\.volumeMounts|spec\.volumes", "/mounts"),
    (r"spec\.initContainers", "/roles/{role}/init_containers"),
    (r"spec\.(?:affinity|nodeSelector|nodeName|tolerations)", "/roles/{role}/nodes"),
    (r"spec\.imagePullSecrets", "/registry_auth"),
    (r"spec\.activeDeadlineSeconds", "/time_limit_s"),
    (r"spec\.terminationGracePeriodSeconds", "/grace_s"),
    (r"spec\.(?:priority|priorityClassName)", "/priority"),
    (r"spec\.(?:hostname|subdomain)", "/roles/{role}/name"),
)
"""Beginnings of a pod's fields, the narrower ones first → pointers into the JobSpec."""


def find_pointer(field: str, role: int) -> str:
    """Return the pointer into the JobSpec for a field of a pod of the role at a position, "" for none."""
    for beginning, pointer in _POINTERS:
        if re.match(beginning, field):
            return pointer.format(role=role)
    return ""
