"""Official images of a fresh console: those that the vendors' pages name in their samples.

Sources: PAI-DLC's page on creating jobs (its two Python samples, and `tfjob.params`), and the request of its
API reference for CreateJob.  A cluster without a container engine runs jobs that name them without images.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Final

from jobs.models import Image

_REPOSITORY: Final = "pai-dlc/tensorflow-training"


@dataclass(frozen=True, slots=True)
class OfficialImage:
    """An image for everybody, as a row of the table of images has it."""

    key: str
    name: str
    address: str
    version: str
    python: str
    accelerator: str
    framework: str = "Tensorflow"


OFFICIAL_IMAGES: Final = (
    OfficialImage(
        "tensorflow-1-15-cpu",
        "tensorflow-training:1.15-cpu-py36-ubuntu18.04",
        f"registry-vpc.cn-hangzhou.aliyuncs.com/{_REPOSITORY}:1.15-cpu-py36-ubuntu18.04",
        version="1.15",
        python="3.6",
        accelerator="CPU",
    ),
    OfficialImage(
        "tensorflow-1-12-2pai-cpu",
        "tensorflow-training:1.12.2PAI-cpu-py27-ubuntu16.04",
        f"registry-vpc.cn-beijing.aliyuncs.com/{_REPOSITORY}:1.12.2PAI-cpu-py27-ubuntu16.04",
        version="1.12.2PAI",
        python="2.7",
        accelerator="CPU",
    ),
    OfficialImage(
        "tensorflow-1-12pai-gpu",
        "tensorflow-training:1.12PAI-gpu-py36-cu101-ubuntu18.04",
        f"registry.cn-hangzhou.aliyuncs.com/{_REPOSITORY}:1.12PAI-gpu-py36-cu101-ubuntu18.04",
        version="1.12PAI",
        python="3.6",
        accelerator="GPU",
    ),
)


def add_official_images() -> None:
    """Add the official images to a fresh console."""
    for image in OFFICIAL_IMAGES:
        Image.objects.create(official=True, **asdict(image))
