"""JobSpec → OpenPAI v2, anew or into a text that is already there, in the syntax of that text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from jobs.dialects import documents, rendering
from jobs.dialects.base import Rendered
from jobs.dialects.document import Document
from jobs.dialects.openpai_v2 import keys, reading
from jobs.dialects.openpai_v2.document import document, rename_roles
from jobs.dialects.openpai_v2.extras import as_list, as_object
from jobs.dialects.rendering import Form, JsonObject
from jobs.dialects.spans import escape, split
from jobs.dialects.yaml_text.rules import JS_YAML
from jobs.dialects.yaml_text.values import copied
from jobs.spec import JobSpec

NAME: Final = "openpai-v2"


def _written(job: JsonObject, *, as_json: bool) -> str:
    order = [rule.key for rule in keys.JOB]
    places = {key: index for index, key in enumerate(order)}
    sorted_ = dict(sorted(job.items(), key=lambda member: places.get(member[0], len(order))))
    return documents.write(sorted_, as_json=as_json)


def _patched(base: Document, before: JsonObject, after: JsonObject) -> str | None:
    names = _renamed(before, after)
    if names:
        base = Document(documents.rename(base, dict(_pointers(before, names)), JS_YAML))
        before = as_object(copied(before))
        rename_roles(before, {**{name: name for name in _roles(before)}, **names})
    return documents.patch(base, before, after, {}, JS_YAML)


def _roles(job: JsonObject) -> dict[str, object]:
    return as_object(job.get(keys.TASK_ROLES.key))


def _renamed(before: JsonObject, after: JsonObject) -> dict[str, str]:
    """Roles that are called otherwise: of as many, those in the same place."""
    old, new = list(_roles(before)), list(_roles(after))
    if len(old) != len(new):
        return {}
    pairs = zip(old, new, strict=True)
    return {one: other for one, other in pairs if one not in new and other not in old}


def _pointers(job: JsonObject, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Every place where a role is named by a key, and its new name."""
    key, extras = keys.TASK_ROLES.key, f"/{keys.EXTRAS.key}"
    count = len(as_list(job.get(keys.DEPLOYMENTS.key)))
    places = ["", f"{extras}/{keys.HIVED.key}", f"{extras}/{keys.OURS}"]
    places += [f"/{keys.DEPLOYMENTS.key}/{index}" for index in range(count)]
    for place in places:
        held: object = job
        for token in split(f"{place}/{key}"):
            held = held[int(token)] if isinstance(held, list) else as_object(held).get(token)
        for old, new in names.items():
            if old in as_object(held):
                yield f"{place}/{key}/{escape(old)}", new


def render(spec: JobSpec, extras: Mapping[str, object], base: Document | None = None) -> Rendered:
    """Write `spec`, in YAML unless it was JSON; what v2 can't say is noted by its JobSpec path."""
    written = partial(_written, as_json=bool(extras.get(reading.JSON)))
    return rendering.render(Form(NAME, reading.parse, document, written, _patched), spec, extras, base)
