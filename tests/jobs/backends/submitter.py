"""What another worker does that submits: tests freeze or kill it on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jobs.backends.base import Backend, Handle, Person, Submission
from jobs.backends.kubernetes.config import KubernetesConfig
from jobs.backends.local.backend import LocalBackend
from jobs.backends.local.config import LocalConfig
from jobs.backends.ray.backend import RayBackend
from jobs.backends.ray.config import RayConfig
from jobs.backends.slurm.config import SlurmConfig
from jobs.node.sandbox.folders import SharedFolderRule
from jobs.node.sandbox.isolation import Isolation
from jobs.spec import JobSpec
from tests.jobs.backends import kubernetes_bench
from tests.jobs.backends.slurm_bench import Releasing


def submit(told: dict[str, Any]) -> Handle:
    """Submit what is told."""
    fields = dict(told["submission"])
    fields["spec"] = JobSpec.model_validate_json(fields["spec"])
    fields["person"] = Person(**fields["person"])
    return backend(told).submit(Submission(**fields))


def backend(told: dict[str, Any]) -> Backend:
    """The backend that is told."""
    if "ray" in told:
        return RayBackend(RayConfig.from_settings(Path(told["home"]), told["ray"]))
    if "kubernetes" in told:
        return kubernetes_bench.Releasing(
            KubernetesConfig.from_settings(Path(told["home"]), told["kubernetes"])
        )
    if "slurm" in told:
        return Releasing(SlurmConfig.from_settings(Path("/"), told["slurm"]))
    config = dict(told["config"])
    config["show"] = tuple(Path(path) for path in config["show"])
    config["folders"] = tuple(
        SharedFolderRule.from_settings(path, {"workspaces": ["*"]}) for path in config.pop("folders")
    )
    config["isolation"] = Isolation(config["isolation"]) if config["isolation"] else None
    return LocalBackend(LocalConfig(root=Path(told["root"]), hide=Path(told["hide"]), **config))
