"""Environment: the image, the command, and what is brought along for it."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from jobs.forming import acceleration
from jobs.views.forming.shown import Block, Drawing, Group, Shown
from quotas.models import User

REGISTRY = ("registry-username", "registry-secret", "registry-password", "registry-registry", "registry-file")
LIBRARIES = ("libraries", "libraries-folder")
CODE = ("code-uri", "code-id", "code-branch", "code-commit", "code-path")


def model(_user: User, drawing: Drawing) -> dict[str, Any]:
    """What the section's template draws."""
    mounted = (drawing.rows("datasets"), drawing.rows("mounts"))
    variables = (drawing.rows("env"),)
    return {
        "blocks": tuple(_block(drawing, role, name) for role, name in enumerate(drawing.roles)),
        "groups": (
            Group("env", _("Environment variables"), rows=variables, template="jobs/new/env.html"),
            Group("data", _("Datasets and mounts"), rows=mounted),
            Group("libraries", _("Third-party libraries"), drawing.several(*LIBRARIES)),
            Group("code", _("Code"), drawing.several(*CODE)),
            Group("registry", _("Private image registry"), drawing.several(*REGISTRY)),
        ),
    }


def _block(drawing: Drawing, role: int, name: str) -> Block:
    title = name if len(drawing.roles) > 1 else ""
    return Block(role, title, (*_image(drawing, role), drawing.one("roles-*-command", role)))


def _image(drawing: Drawing, role: int) -> tuple[Shown, ...]:
    """The image; whether it is the accelerated edition is asked only where there may be one."""
    image = drawing.one("roles-*-image", role)
    if not acceleration.applies_to(image.value):
        return (image,)
    return (image, drawing.one("roles-*-accelerated", role))
