"""Image acceleration: Alibaba's registry keeps an accelerated edition of an image beside it, by its tag."""

from __future__ import annotations

import re
from typing import Final

SUFFIX: Final = "_accelerated"
_REGISTRY: Final = re.compile(r"[\w.-]*\.(cr\.aliyuncs\.com|aliyuncs\.com)(:\d+)?/")
_TAGGED: Final = re.compile(r"(?P<name>.+/[^:/@]+):(?P<tag>[^:/@]+)")


def applies_to(image: str) -> bool:
    """Whether the image is one that may have such an edition."""
    return bool(_REGISTRY.match(image) and _TAGGED.fullmatch(image))


def is_on(image: str) -> bool:
    """Whether it is the accelerated edition."""
    return applies_to(image) and image.endswith(SUFFIX)


def turned(image: str, on: bool) -> str:
    """The accelerated edition of the image, or the plain one."""
    if not applies_to(image):
        return image
    plain = image.removesuffix(SUFFIX)
    return plain + SUFFIX if on else plain
