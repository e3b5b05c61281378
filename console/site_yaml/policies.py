"""Job policies in site.yaml, below their quotas."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from console.site_yaml.shape import JobPolicyShape
from quotas.models import JobPolicy, Quota, User


def apply(
    quota: Quota,
    shapes: Sequence[JobPolicyShape],
    pointer: str,
    put: Callable[[Any, str, Mapping[str, Any]], bool],
    fault: Callable[[str, str], None],
) -> list[tuple[JobPolicy, str]]:
    """Make a quota's policies as the file says; return those that it leaves out, with their pointers."""
    known = {
        (row.by_workspace, row.role, row.user.username if row.user else ""): row
        for row in JobPolicy.objects.filter(quota=quota).select_related("user")
    }
    people = {row.username: row for row in User.objects.filter(username__in=[each.person for each in shapes])}
    named = set()
    for number, shape in enumerate(shapes):
        at = f"{pointer}/{number}"
        key = (shape.by_workspace, shape.role, shape.person)
        if key in named:
            fault(at, _("This quota has a policy for this role and user already."))
        elif shape.person and shape.person not in people:
            fault(f"{at}/person", _("User not found."))
        else:
            row = known.get(key) or JobPolicy(quota=quota, by_workspace=shape.by_workspace)
            values = shape.model_dump(exclude={"by_workspace", "person", "gpu_types"})
            own = {"user": people.get(shape.person), "gpu_types": ", ".join(shape.gpu_types)}
            put(row, at, {**values, **own})
        named.add(key)
    return [(row, pointer) for key, row in known.items() if key not in named]


def export(quota: Quota) -> list[dict[str, Any]]:
    """Return a quota's policies as the file has them."""
    return [_render(row) for row in quota.policies.all()]


def _render(row: JobPolicy) -> dict[str, Any]:
    own = {"person": row.user.username if row.user else "", "gpu_types": list(row.type_names)}
    fields = JobPolicyShape.model_fields
    values = {name: own[name] if name in own else getattr(row, name) for name in fields}
    return {
        name: str(value) if isinstance(value, str) else value
        for name, value in values.items()
        if value != fields[name].get_default(call_default_factory=True)
    }
