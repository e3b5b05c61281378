"""Images on Slurm: by its own containers (OCI bundles), by Pyxis, or by Apptainer.

The first two are options of srun, so that a replica's own shell already runs in the image: what is brought
for it is brought by a step before, without the image, and once for the whole job.  Apptainer is called on the
node around the command, like a view of files.  An image has to have bash and the usual small programs in it.
Slurm's own containers (22.05) are told neither which task they are nor which GPUs they have, so a role has
one of them and none.  They have nothing mounted but what the bundle itself says: the folder that the console
shares with the nodes has to be among that.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from jobs.backends.slurm.config import SlurmConfig
from jobs.backends.staging.places import refused
from jobs.dialects.sbatch.values import written_image
from jobs.spec import JobSpec

BY_SRUN: Final = frozenset({"pyxis", "oci"})
APPTAINER: Final = "apptainer"

_SCHEME: Final = re.compile(r"[a-z][a-z-]*://")

BOXES: Final = Path(__file__).with_suffix(".sh").read_text(encoding="utf-8").rstrip("\n")


def check(spec: JobSpec, config: SlurmConfig, *, alone: bool) -> None:
    """Raise Refused for images that this cluster can't run."""
    images = [role.image for role in spec.roles if role.image]
    if not images:
        return
    if not config.images or (alone and config.images in BY_SRUN):
        if not config.allow_plain:
            raise refused("no_image_engine", image=images[0])
        return
    wrong = next((image for image in images if not image.startswith("/")), None)
    if config.images == "oci" and wrong is not None:
        raise refused("image_no_bundle", image=wrong)
    if config.images == "oci" and any(
        each.replicas > 1 or each.resources.gpus for each in spec.roles if each.image
    ):
        raise refused("image_for_one", image=images[0])


def used(spec: JobSpec, config: SlurmConfig, *, alone: bool) -> str:
    """By what the job's images run; '' for not at all."""
    if not any(role.image for role in spec.roles) or (alone and config.images in BY_SRUN):
        return ""
    return config.images


def lines(spec: JobSpec, engine: str) -> Iterator[str]:
    """The lines of the script that name each role's image."""
    yield f"engine={engine if engine in BY_SRUN else ''}"
    if engine in BY_SRUN:
        yield BOXES
        yield f"images=({' '.join(shlex.quote(_named(role.image, engine)) for role in spec.roles)})"


def apptainer(image: str, *, gpus: bool) -> str:
    """The variables by which a replica's command runs by Apptainer, in its environment's lines."""
    return f"image={shlex.quote(_named(image, APPTAINER))} nvidia={'--nv' if gpus else ''}"


def _named(image: str, engine: str) -> str:
    if not image or image.startswith("/") or engine == "oci":
        return image
    if engine == "pyxis":
        return written_image(image)
    return image if _SCHEME.match(image) else f"docker://{image}"
