"""A Kubernetes batch/v1 Job: read as Kubeflow's PyTorchJob with one role, which its pods become."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from jobs.dialects import documents
from jobs.dialects.base import Refused, refusal
from jobs.dialects.document import Document
from jobs.dialects.fields import CONSOLE
from jobs.dialects.kubeflow.kinds import NEVER, ON_FAILURE, V1
from jobs.dialects.kubeflow.parser import is_job as is_kubeflow
from jobs.dialects.pasted.layers import Layer, Remark, ValueAt, write_layer
from jobs.dialects.source import Source
from jobs.dialects.spans import Node, escape, find, split
from jobs.dialects.yaml_text.rules import KUBERNETES

SEEN: Final = re.compile(r"apiVersion(?<=\bapiVersion)[\"']?\s*:\s*[\"']?batch/v1\b")
"""The boundary stands behind its word: Python finds a pattern sooner that begins with plain text."""

BACKOFF: Final = 6
"""How often Kubernetes starts a failed pod of a Job again, where nothing is said."""

_RUN: Final = ("backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished", "suspend")
_SAID: Final = frozenset({*_RUN, "parallelism", "completions", "template"})
_TOP: Final = frozenset({"apiVersion", "kind", "metadata", "spec"})
_MAIN: Final = "pytorch"


def of_job(document: Document) -> Layer | None:
    """Return the one Job of a manifest."""
    if not SEEN.search(document.text):
        return None
    try:
        source = documents.read(document, KUBERNETES, _pick)
    except Refused:
        return None
    if not _is_job(source.value):
        return None
    return _Manifest(source).layer()


def _pick(found: Sequence[object]) -> int:
    ours = [index for index, value in enumerate(found) if _is_job(value)]
    if len(ours) != 1 or any(map(is_kubeflow, found)):
        raise refusal("yaml_documents", CONSOLE, count=len(found))
    return ours[0]


def _is_job(value: object) -> bool:
    return isinstance(value, dict) and value.get("kind") == "Job" and value.get("apiVersion") == "batch/v1"


class _Manifest:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._value = source.value if isinstance(source.value, dict) else {}
        self._top: Node = source.tree
        self._remarks: list[Remark] = []

    def layer(self) -> Layer:
        """Return the PyTorchJob that runs the same pods."""
        spec = self._value.get("spec")
        said: Mapping[str, object] = spec if isinstance(spec, dict) else {}
        at = self._at("/spec")
        members = {
            "apiVersion": ValueAt(V1, self._at("/apiVersion")),
            "kind": ValueAt("PyTorchJob", self._at("/kind")),
        }
        if "metadata" in self._value:
            members["metadata"] = self._piece("/metadata", self._value["metadata"])
        policy = {key: self._piece(f"/spec/{key}", said[key]) for key in _RUN if key in said}
        policy.setdefault("backoffLimit", ValueAt(BACKOFF, at))
        members["spec"] = ValueAt(
            {
                "runPolicy": ValueAt(policy, at),
                "pytorchReplicaSpecs": ValueAt({"Worker": ValueAt(dict(self._role(said, policy)), at)}, at),
            },
            at,
        )
        for key in said:
            if key not in _SAID:
                self._left_out(f"/spec/{key}", key)
        for key in self._value:
            if key not in _TOP:
                self._left_out(f"/{key}", key)
        return write_layer("kubernetes_job", ValueAt(members, self._at("")), self._remarks)

    def _role(
        self, said: Mapping[str, object], policy: Mapping[str, ValueAt]
    ) -> Iterator[tuple[str, ValueAt]]:
        """Yield the one role: as many pods as run at a time."""
        count = said.get("parallelism", 1)
        completions = said.get("completions")
        if completions is not None and completions != count:
            self._remarks.append(
                Remark("completions_ignored", self._at("/spec/completions"), {"count": str(completions)})
            )
        where = "/spec/parallelism" if "parallelism" in said else "/spec"
        yield "replicas", ValueAt(_plain(count), self._at(where))
        again = policy["backoffLimit"].value != 0
        yield "restartPolicy", ValueAt(ON_FAILURE if again else NEVER, self._at("/spec"))
        if "template" in said:
            yield "template", self._template(said["template"])

    def _template(self, value: object) -> ValueAt:
        """Return the pods; the first container is the main one, whatever it is called."""
        piece = self._piece("/spec/template", value)
        pod = piece.value.get("spec") if isinstance(piece.value, dict) else None
        containers = pod.value.get("containers") if pod and isinstance(pod.value, dict) else None
        items = containers.value if containers and isinstance(containers.value, list) else None
        if items and isinstance(items[0].value, dict):
            named: ValueAt = items[0].value.get("name") or items[0]
            items[0].value["name"] = ValueAt(_MAIN, named.at, named.key_at)
        if pod and isinstance(pod.value, dict):
            pod.value.pop("restartPolicy", None)
        return piece

    def _piece(self, pointer: str, value: object) -> ValueAt:
        """Return a value as it stands, each part with its place."""
        node, found = find(self._top, split(pointer))
        key_at = node.key_start if found else None
        if isinstance(value, dict):
            members = {
                str(key): self._piece(f"{pointer}/{escape(str(key))}", each) for key, each in value.items()
            }
            return ValueAt(members, node.start, key_at)
        if isinstance(value, list):
            items = [self._piece(f"{pointer}/{index}", each) for index, each in enumerate(value)]
            return ValueAt(items, node.start, key_at)
        return ValueAt(_plain(value), node.start, key_at)

    def _at(self, pointer: str) -> int:
        return find(self._top, split(pointer))[0].start

    def _left_out(self, pointer: str, key: str) -> None:
        self._remarks.append(Remark("key_left_out", self._at(pointer), {"key": key}))


def _plain(value: object) -> str | int | float | bool | None:
    return value if isinstance(value, (str, int, float, bool)) else None
