"""Image acceleration: Alibaba's registry has an accelerated edition of an image under a tag of its own."""

from __future__ import annotations

import re
from typing import Final

SUFFIX: Final = "_accelerated"
_REGISTRY: Final = re.compile(r"[\w.-]*\.(cr\.aliyuncs\.com|aliyuncs\.com)(:\d+)?/")
_TAGGED: Final = re.compile(r"(?P<name>.+/[^:/@]+):(?P<tag>[^:/@]+)")


def can_accelerate(image: str) -> bool:
    """Whether the image is one that may have such an edition."""
    return bool(_REGISTRY.match(image) and _TAGGED.fullmatch(image))


def is_accelerated(image: str) -> bool:
    """Whether it is the accelerated edition."""
    return can_accelerate(image) and image.endswith(SUFFIX)


def set_acceleration(image: str, on: bool) -> str:
    """The accelerated edition of the image, or the plain one."""
    if not can_accelerate(image):
        return image
    plain = image.removesuffix(SUFFIX)
    return plain + SUFFIX if on else plain
