"""Creating the objects of an attempt: once, by whichever worker, and to their end after one was killed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from jobs.backends.base import NotSubmitted, Refused, Unknown, Unreachable
from jobs.backends.kubernetes.client.api import Api, ApiError
from jobs.backends.kubernetes.config import KubernetesConfig
from jobs.backends.kubernetes.discovery import discover
from jobs.backends.kubernetes.handles import INSTALLATION_LABEL, KEY_LABEL, AttemptRef
from jobs.backends.kubernetes.objects import attempt as attempt_objects
from jobs.backends.kubernetes.objects.attempt import CREATED, AttemptObjects, ClaimState, owned_by, path_of
from jobs.backends.kubernetes.objects.kubeflow import job_path
from jobs.backends.kubernetes.objects.pods import pull_secret_name
from jobs.backends.kubernetes.refused_fields import find_pointer
from jobs.dialects.kubeflow.kinds import BY_NAME
from jobs.faults import fault

Object = dict[str, Any]

STRAY_S: Final = 7 * 24 * 3600
"""A claim that was not released for so long never will be."""

MONTH: Final = "%Y-%m"
_INVALID: Final = frozenset({400, 422})
_QUOTA: Final = "exceeded quota"
"""What a ResourceQuota's refusal says (403); another 403 is a policy or a missing right."""


class Submitter:
    """The API server, for the objects of attempts."""

    def __init__(self, api: Api, config: KubernetesConfig) -> None:
        self._api = api
        self._config = config

    def find_claim(self, attempt: AttemptRef) -> Object | None:
        """Return an attempt's claim, None for none.  Raises ApiError or Unreachable."""
        try:
            return self._api.get(attempt.path("configmaps", attempt.key))
        except ApiError as error:
            if not error.is_absent:
                raise
            return None

    def try_pods(self, attempt: AttemptRef, objects: AttemptObjects) -> None:
        """Have the API server check one pod of each role, and what makes the pods if not the console.

        Raises Refused, NotSubmitted or Unreachable.
        """
        jobs = [item for item in objects.owned if item["kind"] in BY_NAME]
        for role, item in enumerate((*objects.pods, *jobs)):
            try:
                self._api.create(path_of(attempt.namespace, item), item, dry_run=True)
            except ApiError as error:
                raise explain(error, role) from error

    def submit(self, attempt: AttemptRef, objects: AttemptObjects, claim: Object | None) -> Object:
        """Submit an attempt, held, whose claim another worker may have made; return the claim.

        Raises Unknown where the API server may have taken the submission, else ApiError or Unreachable.
        """
        claim = claim or self._create_claim(attempt, objects)
        fault("kubernetes.claimed")
        if attempt_objects.state_of(claim) is ClaimState.PREPARING:
            self._prepare(attempt, objects, claim)
            fault("kubernetes.prepared")
            claim = self._hand_over(attempt, objects, claim)
            fault("kubernetes.submitted")
        return claim

    def release(self, attempt: AttemptRef) -> Object:
        """Release an attempt that is held, and create its objects; return the claim.

        Raises ApiError for what is refused now (a quota), and may be taken later, and Unreachable.
        """
        path = attempt.path("configmaps", attempt.key)
        claim = self._api.patch_if(path, attempt_objects.release_patch(attempt.key))
        if claim is None:  # it was released before, or has ended
            claim = self._api.get(path)
        fault("kubernetes.released")
        return self.complete(attempt, claim)

    def complete(self, attempt: AttemptRef, claim: Object) -> Object:
        """Create the objects of a released attempt that are not there; return the claim.

        Raises ApiError or Unreachable like `release`.
        """
        if attempt_objects.state_of(claim) is not ClaimState.RELEASED or attempt_objects.is_created(claim):
            return claim
        for item in attempt_objects.unpack(claim):
            self._create(path_of(attempt.namespace, item), owned_by(item, claim))
            fault("kubernetes.creating")
        path = attempt.path("configmaps", attempt.key)
        done = self._api.patch(path, {"metadata": {"annotations": {CREATED: "true"}}})
        if attempt_objects.state_of(done) is not ClaimState.RELEASED:  # ended meanwhile: these never begin
            for item in attempt_objects.unpack(claim):
                if item["kind"] in BY_NAME:
                    self.delete_job(attempt, item["kind"])
            for pod in self._api.list(attempt.path("pods"), labels=f"{KEY_LABEL}={attempt.key}").items:
                if (pod.get("status") or {}).get("phase") == "Pending":
                    self._api.delete(attempt.path("pods", pod["metadata"]["name"]), grace_s=0)
        fault("kubernetes.created")
        return done

    def close(self, attempt: AttemptRef) -> Object | None:
        """Let no container of the attempt start any more; return the claim, None for none.

        Raises ApiError or Unreachable.
        """
        try:
            return self._api.patch(attempt.path("configmaps", attempt.key), attempt_objects.end_patch())
        except ApiError as error:
            if not error.is_absent:
                raise
            return None

    def find_job(self, attempt: AttemptRef, kind: str) -> Object | None:
        """Return an attempt's object of a Kubeflow kind, None for none or another maker's.

        Raises ApiError or Unreachable.
        """
        try:
            found = self._api.get(job_path(attempt, kind))
        except ApiError as error:
            if not error.is_absent:
                raise
            return None
        except Unreachable:  # also what a server says of a kind that was removed
            if kind in discover(self._api, self._config.connection().server).kinds:
                raise
            return None
        owners = found["metadata"].get("ownerReferences") or ()
        return found if any(each["name"] == attempt.key for each in owners) else None

    def delete_job(self, attempt: AttemptRef, kind: str) -> None:
        """Delete an attempt's object of a Kubeflow kind, if it has one: its operator makes no pods any more.

        Kubernetes deletes its pods then, with their own grace periods.  Raises ApiError or Unreachable.
        """
        if kind and (job := self.find_job(attempt, kind)) is not None:
            self._api.delete(job_path(attempt, kind), uid=job["metadata"]["uid"])

    def bury(self, attempt: AttemptRef) -> None:
        """Leave nothing of a claim but its key, so that the attempt never starts again.

        Such claims of the months before the last are removed.  Raises ApiError or Unreachable.
        """
        today = datetime.now(UTC).date()
        month, before = (each.strftime(MONTH) for each in (today, today.replace(day=1) - timedelta(days=1)))
        try:
            patch = attempt_objects.tombstone_patch(month)
            self._api.patch(attempt.path("configmaps", attempt.key), patch)
        except ApiError as error:
            if not error.is_absent:
                raise
        label = attempt_objects.MONTH_LABEL
        selector = f"{label},{label} notin ({month},{before})"
        self._api.delete_many(attempt.path("configmaps"), labels=selector)

    def remove_strays(self, attempt: AttemptRef, now: float) -> None:
        """Remove claims of the namespace that were never released: their submitters died, or came too late.

        With them goes what they own, such as Secrets.  Raises ApiError or Unreachable.
        """
        held = f"{attempt_objects.STATE_LABEL} in ({ClaimState.PREPARING},{ClaimState.SUBMITTED})"
        labels = f"{held},{INSTALLATION_LABEL}={attempt.installation}"
        for claim in self._api.list(attempt.path("configmaps"), labels=labels).items:
            about = claim["metadata"]
            if now - datetime.fromisoformat(about["creationTimestamp"]).timestamp() > STRAY_S:
                self._api.delete(attempt.path("configmaps", about["name"]), uid=about["uid"])

    def remove_secrets(self, attempt: AttemptRef, claim: Object | None = None) -> None:
        """Remove the attempt's Secrets and its code, which nothing needs that has begun.

        A submitted `claim` tells what there is of them.
        """
        prepared = attempt_objects.list_prepared(claim) if claim else None
        if prepared is not None:
            for kind, name in prepared:
                self._api.delete(attempt.path(kind, name))
            return
        for name in (attempt.key, pull_secret_name(attempt.key)):
            self._api.delete(attempt.path("secrets", name))
        selector = f"{KEY_LABEL}={attempt.key},!{attempt_objects.STATE_LABEL}"
        self._api.delete_many(attempt.path("configmaps"), labels=selector)

    def _create_claim(self, attempt: AttemptRef, objects: AttemptObjects) -> Object:
        path = attempt.path("configmaps")
        try:
            try:
                return self._api.create(path, objects.claim())
            except ApiError as error:
                if not (error.is_absent and self._config.create_namespaces):
                    raise
            self._create("/api/v1/namespaces", self._namespace(attempt))
            return self._api.create(path, objects.claim())
        except ApiError as error:
            if not error.is_conflict:
                raise
        return self._api.get(attempt.path("configmaps", attempt.key))

    def _namespace(self, attempt: AttemptRef) -> Object:
        labels = {"job-console/installation": attempt.installation}
        about = {"name": attempt.namespace, "labels": labels}
        return {"apiVersion": "v1", "kind": "Namespace", "metadata": about}

    def _prepare(self, attempt: AttemptRef, objects: AttemptObjects, claim: Object) -> None:
        """Create what has to be there before the attempt is submitted."""
        for item in objects.list_prepared():
            self._create(path_of(attempt.namespace, item), owned_by(item, claim))

    def _hand_over(self, attempt: AttemptRef, objects: AttemptObjects, claim: Object) -> Object:
        """Submit the attempt, unless another worker has done so or ended it meanwhile."""
        path = attempt.path("configmaps", attempt.key)
        try:
            return self._api.patch(path, objects.submission_patch(claim["metadata"]["resourceVersion"]))
        except ApiError as error:
            if not error.is_conflict:
                raise
        except Unreachable as error:
            raise Unknown(str(error)) from error
        try:
            claim = self._api.get(path)
        except Unreachable as error:
            raise Unknown(str(error)) from error
        if attempt_objects.state_of(claim) in (ClaimState.ENDED, ClaimState.FORGOTTEN):
            self.remove_secrets(attempt)  # which this worker has created too late
        return claim

    def _create(self, path: str, body: Mapping[str, Any]) -> None:
        """Create an object, unless it is there.  Raises ApiError where another maker's has its name."""
        try:
            self._api.create(path, body)
        except ApiError as error:
            if not error.is_conflict:
                raise
            if body["kind"] in BY_NAME and not _is_same(
                self._api.get(f"{path}/{body['metadata']['name']}"), body
            ):
                raise


def _is_same(found: Object, wanted: Mapping[str, Any]) -> bool:
    """Return whether an object is of the same claim as the one that was to be created."""
    owners = found["metadata"].get("ownerReferences") or ()
    return wanted["metadata"]["ownerReferences"][0]["uid"] in {each["uid"] for each in owners}


def explain(error: ApiError, role: int = 0) -> Refused | NotSubmitted:
    """Return what a refusal of a pod of the role at a position means for a job: for good, or for now."""
    if _QUOTA in error.message or error.status not in (*_INVALID, 403):
        return NotSubmitted.not_sent(error.message)
    field = next((each.field for each in error.causes if each.field), "")
    return Refused.by_engine(error.message, field=field, pointer=find_pointer(field, role))
