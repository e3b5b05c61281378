"""All objects of an attempt, and the claim by which the API server accepts it once.

The claim is a ConfigMap with the attempt's key for a name.  It is created empty, which decides who submits
the attempt.  Its Secret follows, and a patch of the claim with all other objects submits it: held, as none of
them is created.  Its release is a patch with the variable `pods.GATE`, after which any worker creates the
objects.  Without that variable no container of the attempt starts: no pod does that a worker creates late,
after the attempt was stopped or forgotten.  A forgotten attempt leaves its claim as a tombstone.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import accumulate
from typing import Any, Final

from jobs.backends.base import Submission
from jobs.backends.kubernetes.config import KubernetesConfig
from jobs.backends.kubernetes.handles import INSTALLATION_LABEL, KEY_LABEL
from jobs.backends.kubernetes.objects import code, kubeflow, pods, transfers
from jobs.backends.kubernetes.objects.checks import check
from jobs.backends.kubernetes.objects.environment import Peers, shared_variables
from jobs.backends.kubernetes.objects.volumes import list_fetched
from jobs.backends.refusals import refusal
from jobs.backends.staging import containers
from jobs.backends.staging.transfer_orders import Order
from jobs.dialects.kubeflow.kinds import BY_NAME, JobKind
from jobs.node.frameworks import mpi

Object = dict[str, Any]

STATE_LABEL: Final = "job-console/state"
MONTH_LABEL: Final = "job-console/forgotten"
CREATED: Final = "job-console/created"
"""The claim's annotation once all its objects were created."""

PREPARED: Final = "job-console/prepared"
"""The claim's annotation with what is removed when the attempt has ended, as in `secrets/NAME`."""

OBJECTS: Final = "objects"
"""The key of the claim's compressed objects."""

MOST_CLAIM_BYTES: Final = 900_000
"""Of everything in a claim: the API server takes 1 MiB, and base64 makes more of the objects."""


class ClaimState(StrEnum):
    """State of a claim.

    PREPARING: a worker makes the attempt's Secret.  SUBMITTED: the attempt is held.  RELEASED: its objects
    are there, or any worker creates them.  ENDED: nothing of it starts any more.  FORGOTTEN: only its key is
    kept.
    """

    PREPARING = "preparing"
    SUBMITTED = "submitted"
    RELEASED = "released"
    ENDED = "ended"
    FORGOTTEN = "forgotten"


@dataclass(frozen=True, slots=True)
class AttemptObjects:
    """The objects of an attempt, in the order in which they are created; `pods` are a pod of each role."""

    key: str
    labels: Mapping[str, str]
    secrets: Sequence[Object]
    parts: Sequence[Object]
    variables: Mapping[str, str]
    owned: Sequence[Object]
    pods: Sequence[Object]

    def claim(self) -> Object:
        """Return the claim as it is created."""
        labels = {**self.labels, STATE_LABEL: ClaimState.PREPARING.value}
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": self.key, "labels": labels},
        }

    def with_signed(self, signed: Mapping[str, Sequence[Any]]) -> AttemptObjects:
        """Return the objects with signed addresses of buckets in the Secret.  Raises Refused for too many."""
        if not signed:
            return self
        secret, *others = self.secrets
        return replace(self, secrets=[transfers.add_signed(secret, signed), *others])

    def submission_patch(self, version: str) -> Object:
        """Return the patch that submits the attempt, if its claim still has that resource version."""
        text = json.dumps(list(self.owned), separators=(",", ":")).encode()
        packed = base64.b64encode(gzip.compress(text, mtime=0)).decode()
        if len(packed) + sum(map(len, self.variables.values())) > MOST_CLAIM_BYTES:
            raise refusal("field", field="replicas")
        prepared = (f"{_PLURALS[each['kind']]}/{each['metadata']['name']}" for each in self.list_prepared())
        about = {
            "resourceVersion": version,
            "labels": {STATE_LABEL: ClaimState.SUBMITTED.value},
            "annotations": {PREPARED: " ".join(prepared)},
        }
        variables = {name: value for name, value in self.variables.items() if name != pods.GATE}
        return {"metadata": about, "data": variables, "binaryData": {OBJECTS: packed}}

    def list_prepared(self) -> Sequence[Object]:
        """Return what is created before the attempt is submitted, and removed when it has ended."""
        return (*self.secrets, *self.parts)


def render(
    submission: Submission, config: KubernetesConfig, kind: JobKind | None = None, queue: str = ""
) -> AttemptObjects:
    """Return the objects of a submission: of a Kubeflow kind, which may wait in a queue of Kueue, or pods.

    Raises Refused for what the cluster can't do.
    """
    check(submission, config)
    key, peers = submission.key, Peers.of(submission, config, kind)
    brought = code.plan_code(submission, config)
    orders = transfers.list_orders(brought, list_fetched(submission, config))
    labels = pods.object_labels(key, submission.job_id)
    parts = [
        _config_map(code.part_name(key, number), labels, {"part": base64.b64encode(part).decode()})
        for number, part in enumerate(brought.parts if brought else ())
    ]
    rendered = pods.render_pods(submission, config, peers, brought, orders)
    if kind:
        queued = {**labels, kubeflow.QUEUE_LABEL: queue} if queue else labels
        job = kubeflow.render_job(submission, config, kind, queued, rendered)
        owned, first = [_network_policy(key, labels), job], rendered
    else:
        owned = [_service(key, labels), _network_policy(key, labels), *rendered]
        starts = accumulate((role.replicas for role in submission.spec.roles[:-1]), initial=0)
        first = [rendered[start] for start in starts]
    secret = _secrets(submission, labels, brought.secret if brought else "", orders)
    variables = shared_variables(submission, peers, config)
    return AttemptObjects(key, labels, secret, parts, variables, owned, first)


def unpack(claim: Object) -> list[Object]:
    """Return the objects of a claim; none of one that is not submitted."""
    packed = (claim.get("binaryData") or {}).get(OBJECTS)
    found: list[Object] = json.loads(gzip.decompress(base64.b64decode(packed))) if packed else []
    return found


def state_of(claim: Object) -> ClaimState:
    """Return the state of a claim; an object of another maker counts as forgotten, so that nothing starts."""
    label = (claim["metadata"].get("labels") or {}).get(STATE_LABEL, "")
    return ClaimState(label) if label in set(ClaimState) else ClaimState.FORGOTTEN


def is_created(claim: Object) -> bool:
    """Return whether all objects of a claim were created."""
    return CREATED in (claim["metadata"].get("annotations") or {})


def owned_by(item: Object, claim: Object) -> Object:
    """Return an object with the claim for its owner, with which it is removed."""
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": claim["metadata"]["name"]}
    about = {**item["metadata"], "ownerReferences": [{**owner, "uid": claim["metadata"]["uid"]}]}
    return {**item, "metadata": about}


def list_prepared(claim: Object) -> list[tuple[str, str]] | None:
    """Return the kinds and names of what an attempt has until its end; None for a claim that does not say.

    An annotation is anybody's to write: only objects of the attempt's own name are read from it.
    """
    about = claim["metadata"]
    found = (about.get("annotations") or {}).get(PREPARED)
    own = rf"(?<!\S)(secrets|configmaps)/({re.escape(about['name'])}(?:-[a-z0-9-]+)?)(?!\S)"
    return None if found is None else re.findall(own, found)


def release_patch(key: str) -> list[Object]:
    """Return the JSON patch that releases an attempt, if it is held."""
    state = f"/metadata/labels/{STATE_LABEL.replace('/', '~1')}"
    return [
        {"op": "test", "path": state, "value": ClaimState.SUBMITTED.value},
        {"op": "replace", "path": state, "value": ClaimState.RELEASED.value},
        {"op": "add", "path": f"/data/{pods.GATE}", "value": key},
    ]


def end_patch() -> Object:
    """Return the patch after which nothing of the attempt starts."""
    return {"metadata": {"labels": {STATE_LABEL: ClaimState.ENDED.value}}, "data": {pods.GATE: None}}


def tombstone_patch(month: str) -> Object:
    """Return the patch that leaves of a claim its key and the month in which it was forgotten."""
    labels = {STATE_LABEL: ClaimState.FORGOTTEN.value, MONTH_LABEL: month}
    return {"metadata": {"labels": labels}, "data": None, "binaryData": None}


def checkpoint_claim(submission: Submission, config: KubernetesConfig) -> Object | None:
    """Return the volume claim for what a job saves for its next attempt; None where none is configured."""
    if not config.checkpoint_class or submission.is_check:
        return None
    labels = pods.object_labels(submission.key, submission.job_id)
    labels.pop(KEY_LABEL)
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": pods.checkpoint_name(labels[INSTALLATION_LABEL], submission.job_id),
            "labels": labels,
        },
        "spec": {
            "storageClassName": config.checkpoint_class,
            "accessModes": [config.checkpoint_access],
            "resources": {"requests": {"storage": f"{config.checkpoint_gib}Gi"}},
        },
    }


def _config_map(name: str, labels: Mapping[str, str], binary: Mapping[str, str]) -> Object:
    about = {"name": name, "labels": dict(labels)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "binaryData": dict(binary)}


def _secrets(
    submission: Submission, labels: Mapping[str, str], password: str, orders: Mapping[str, Order]
) -> list[Object]:
    """Return the Secret with the values for the job, and the one with its login for an image registry."""
    values = pods.secret_values(submission)
    if mpi.KEY in values:
        values[mpi.KEY] = secrets.token_hex(32)
    names = {*containers.list_secrets(submission.spec), *([password] if password else [])}
    values |= {pods.file_key(name): submission.secrets[name] for name in sorted(names)}
    values |= transfers.secret_values(orders)
    found = []
    if values:
        about = {"name": submission.key, "labels": dict(labels)}
        made = {"apiVersion": "v1", "kind": "Secret", "metadata": about, "stringData": values}
        found.append(transfers.add_program(made) if orders else made)
    if login := submission.spec.registry_auth:
        password = submission.secrets[login.password.name] if login.password else ""
        pair = base64.b64encode(f"{login.username}:{password}".encode()).decode()
        server = {"username": login.username, "password": password, "auth": pair}
        text = json.dumps({"auths": {login.registry or "https://index.docker.io/v1/": server}})
        about = {"name": pods.pull_secret_name(submission.key), "labels": dict(labels)}
        found.append(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": about,
                "type": "kubernetes.io/dockerconfigjson",
                "stringData": {".dockerconfigjson": text},
            }
        )
    return found


def _service(key: str, labels: Mapping[str, str]) -> Object:
    """Return the headless Service by which replicas find each other, also before they are ready."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": key, "labels": dict(labels)},
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {KEY_LABEL: key},
        },
    }


def _network_policy(key: str, labels: Mapping[str, str]) -> Object:
    """Return the rule that only replicas of the attempt connect to one another."""
    selector = {"matchLabels": {KEY_LABEL: key}}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": key, "labels": dict(labels)},
        "spec": {
            "podSelector": selector,
            "policyTypes": ["Ingress"],
            "ingress": [{"from": [{"podSelector": selector}]}],
        },
    }


def path_of(namespace: str, item: Object) -> str:
    """Return the path at which an object is created."""
    group = "/api/v1" if item["apiVersion"] == "v1" else f"/apis/{item['apiVersion']}"
    return f"{group}/namespaces/{namespace}/{_PLURALS[item['kind']]}"


_PLURALS: Final = {
    "ConfigMap": "configmaps",
    "NetworkPolicy": "networkpolicies",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "Pod": "pods",
    "Secret": "secrets",
    "Service": "services",
    **{kind: f"{kind.lower()}s" for kind in BY_NAME},
}
