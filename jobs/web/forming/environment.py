"""Environment: the image, the command, and what is brought along for it."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from jobs.form import acceleration
from jobs.form.reading import PASTED
from jobs.web.forming import offers
from jobs.web.forming.shown import Block, Drawing, Group, Options, Shown
from quotas.models import User

REGISTRY = ("registry-username", "registry-secret", "registry-password", "registry-registry", "registry-file")
LIBRARIES = ("libraries", "libraries-folder")
SOFTWARE = ("modules", "conda", "venv")
CODE = ("code-uri", "code-branch", "code-commit", "code-path")


def model(user: User, drawing: Drawing) -> dict[str, Any]:
    """What the section's template draws."""
    images = offers.images(user, drawing)
    datasets = offers.offered(drawing.rows("datasets"), "id", offers.datasets(user, drawing))
    mounted = (datasets, drawing.rows("mounts"))
    variables = (drawing.rows("env"),)
    pasted, problem = drawing.kept.get(PASTED, ""), drawing.problem(PASTED)
    code = (drawing.one("code-id", suggested=offers.codes(user, drawing)), *drawing.several(*CODE))
    return {
        "blocks": tuple(_block(drawing, role, name, images) for role, name in enumerate(drawing.roles)),
        "groups": (
            Group(
                "env",
                _("Environment variables"),
                rows=variables,
                template="jobs/new/env.html",
                pasted=pasted,
                problem=problem,
            ),
            Group("data", _("Datasets and mounts"), rows=mounted),
            Group("libraries", _("Third-party libraries"), drawing.several(*LIBRARIES)),
            Group("software", _("Software of the cluster"), drawing.several(*SOFTWARE)),
            Group("code", _("Code"), code, template="jobs/new/upload.html"),
            Group("registry", _("Private image registry"), drawing.several(*REGISTRY)),
        ),
    }


def _block(drawing: Drawing, role: int, name: str, images: Options) -> Block:
    title = name if len(drawing.roles) > 1 else ""
    return Block(role, title, (*_image(drawing, role, images), drawing.one("roles-*-command", role)))


def _image(drawing: Drawing, role: int, images: Options) -> tuple[Shown, ...]:
    """The image; whether it is the accelerated edition is asked only where there may be one."""
    image = drawing.one("roles-*-image", role, suggested=images)
    if not acceleration.applies_to(image.value):
        return (image,)
    return (image, drawing.one("roles-*-accelerated", role))
