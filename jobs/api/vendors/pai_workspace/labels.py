"""Labels of images: the system's own, which say what an image has.

Their keys and values are those of the PAI-DLC page's sample (`system.framework=Tensorflow 1.15`).  An image
has no other labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from django.db.models import Q, QuerySet

from jobs.api.vendors.pai_workspace.assets import invalid
from jobs.models import Image

FRAMEWORK: Final = "system.framework"
PYTHON: Final = "system.pythonVersion"
CHIP: Final = "system.chipType"
DLC: Final = "system.supported.dlc"
OFFICIAL: Final = "system.official"

CPU: Final = "CPU"
GPU: Final = "GPU"


def parse(text: str | None) -> dict[str, str]:
    """Return the labels of `key=value,key=value`.  Raises VendorError."""
    labels = {}
    for each in filter(None, (part.strip() for part in (text or "").split(","))):
        key, mark, value = each.partition("=")
        if not mark:
            raise invalid(f"Labels must be: key=value,key=value; not {each}.")
        labels[key.strip()] = value.strip()
    return labels


def of_image(image: Image) -> list[dict[str, str]]:
    """Return the labels of an image."""
    return [{"Key": key, "Value": value} for key, value in _pairs(image) if value]


def _pairs(image: Image) -> Iterator[tuple[str, str]]:
    yield DLC, "true"
    yield OFFICIAL, "true" if image.official else "false"
    yield FRAMEWORK, f"{image.framework} {image.version}".strip()
    yield PYTHON, image.python
    yield CHIP, _chip(image.accelerator)


def _chip(accelerator: str) -> str:
    """Return the kind of chip; an image for one type of GPU is for GPUs."""
    if not accelerator:
        return ""
    return CPU if accelerator.upper() == CPU else GPU


def filter_images(rows: QuerySet[Image], labels: Mapping[str, str]) -> QuerySet[Image]:
    """Return the images that have all labels; a label that no image has leaves none."""
    for key, value in labels.items():
        condition = _condition(key, value)
        rows = rows.none() if condition is None else rows.filter(condition)
    return rows


def _condition(key: str, value: str) -> Q | None:
    if key == FRAMEWORK:
        framework, blank, version = value.rpartition(" ")
        whole = Q(framework__iexact=value, version="")
        return whole | Q(framework__iexact=framework, version=version) if blank else whole
    if key == PYTHON:
        return Q(python=value)
    if key == CHIP and value in (CPU, GPU):
        is_cpu = Q(accelerator__iexact=CPU)
        return is_cpu if value == CPU else ~is_cpu & ~Q(accelerator="")
    if key == OFFICIAL:
        return Q(official=value == "true")
    return Q() if (key, value) == (DLC, "true") else None


def columns_of(labels: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the columns of an image that labels fill; others are ignored."""
    named = {each["Key"]: each["Value"] for each in labels if each["Key"] and each["Value"]}
    framework, blank, version = named.get(FRAMEWORK, "").rpartition(" ")
    columns = {
        "framework": framework if blank else version,
        "version": version if blank else "",
        "python": named.get(PYTHON, ""),
        "accelerator": named.get(CHIP, ""),
    }
    return {name: value for name, value in columns.items() if value}
