"""Container runtimes: Slurm's own containers (OCI bundles), Pyxis or Apptainer.

The first two are options of srun, so that a replica's own shell already runs in the image: staging is done by
a step before, without the image, once for the whole job.  Apptainer is called on the node around the command.
An image needs bash and the usual small programs.  Slurm's own containers (22.05) don't know their task or
their GPUs, so their role has one replica and no GPU.  They mount only what the bundle names, which has to
include the folder that the console shares with the nodes.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from jobs.backends.refusals import refusal
from jobs.backends.slurm.config import SlurmConfig
from jobs.dialects.sbatch.values import image_to_text
from jobs.spec import JobSpec

BY_SRUN: Final = frozenset({"pyxis", "oci"})
APPTAINER: Final = "apptainer"

_SCHEME: Final = re.compile(r"[a-z][a-z-]*://")

RUNTIME_SCRIPT: Final = Path(__file__).with_suffix(".sh").read_text(encoding="utf-8").rstrip("\n")


def check(spec: JobSpec, config: SlurmConfig, *, alone: bool) -> None:
    """Raise Refused for images that this cluster can't run."""
    images = [role.image for role in spec.roles if role.image]
    if not images:
        return
    if not config.images or (alone and config.images in BY_SRUN):
        if not config.allow_plain:
            raise refusal("no_image_engine", image=images[0])
        return
    wrong = next((image for image in images if not image.startswith("/")), None)
    if config.images == "oci" and wrong is not None:
        raise refusal("image_no_bundle", image=wrong)
    if config.images == "oci" and any(
        each.replicas > 1 or each.resources.gpus for each in spec.roles if each.image
    ):
        raise refusal("image_for_one", image=images[0])


def runtime_of(spec: JobSpec, config: SlurmConfig, *, alone: bool) -> str:
    """Return the runtime of the job's images, "" for none."""
    if not any(role.image for role in spec.roles) or (alone and config.images in BY_SRUN):
        return ""
    return config.images


def render_images(spec: JobSpec, engine: str) -> Iterator[str]:
    """Yield the lines of the script that name each role's image."""
    yield f"engine={engine if engine in BY_SRUN else ''}"
    if engine in BY_SRUN:
        yield RUNTIME_SCRIPT
        yield f"images=({' '.join(shlex.quote(image_name(role.image, engine)) for role in spec.roles)})"


def render_apptainer(image: str, *, gpus: bool) -> str:
    """Return the line of a replica's environment by which its command runs in Apptainer."""
    return f"image={shlex.quote(image_name(image, APPTAINER))} nvidia={'--nv' if gpus else ''}"


def image_name(image: str, engine: str) -> str:
    """Return the name by which a runtime knows an image."""
    if not image or image.startswith("/") or engine == "oci":
        return image
    if engine == "pyxis":
        return image_to_text(image)
    return image if _SCHEME.match(image) else f"docker://{image}"
