"""Jobs, the files that they were submitted as, their events and dependencies."""

from __future__ import annotations

import secrets
import string
from typing import ClassVar, Self

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from jobs.spec import JobSpec
from jobs.states import TERMINAL, Phase, Reason, ReasonCode, State
from quotas.access import Visitor, workspaces_of
from quotas.models import Cluster, Quota, Workspace
from quotas.models.expressions import Literal

ALPHABET = string.ascii_lowercase + string.digits
PUBLIC_ID_LENGTH = 12


def new_public_id() -> str:
    """12 characters a–z 0–9, 62 bits: not to be guessed, and part of DNS labels."""
    return "".join(secrets.choice(ALPHABET) for _i in range(PUBLIC_ID_LENGTH))


class Visibility(models.TextChoices):
    """DLC's Accessibility."""

    PRIVATE = "PRIVATE", _("Private")
    PUBLIC = "PUBLIC", _("Public in the workspace")


def is_unfinished(prefix: str = "") -> models.Q:
    """Return the condition of jobs that can still change, as their index has it; `prefix` leads to the job.

    A query for some of the unfinished states has this condition too: without it SQLite reads all jobs.
    """
    return ~models.Q(
        **{f"{prefix}state__in": [Literal(state) for state in ("SUCCEEDED", "FAILED", "STOPPED")]}
    )


class JobQuerySet(models.QuerySet["Job"]):
    """Every page, API, stream and file starts at `visible_to`."""

    def visible_to(self, user: Visitor) -> Self:
        """Jobs of the person's workspaces, without the deleted ones."""
        return self.filter(workspace__in=workspaces_of(user), deleted_at=None)


class Job(models.Model):
    """One job, through all its attempts.  Only `jobs.lifecycle.transitions` writes `state` and its kin.

    `attempt` and `run` are the current ones; `replicas_*` are counts over the current run, so that a
    list of jobs touches no other table.
    """

    public_id = models.CharField(_("ID"), max_length=16, unique=True, default=new_public_id)
    name = models.CharField(_("name"), max_length=256)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, related_name="jobs", verbose_name=_("owner")
    )
    workspace = models.ForeignKey(Workspace, models.PROTECT, related_name="jobs", verbose_name=_("workspace"))
    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="jobs", verbose_name=_("cluster"))
    quota = models.ForeignKey(Quota, models.PROTECT, related_name="jobs", verbose_name=_("quota"))
    visibility = models.CharField(
        _("visibility"), max_length=8, choices=Visibility, default=Visibility.PRIVATE
    )
    dialect = models.CharField(_("format"), max_length=32)
    priority = models.SmallIntegerField(_("priority"), default=1)

    state = models.CharField(
        _("state"), max_length=12, choices=[(s.value, s.value) for s in State], default=State.QUEUED
    )
    phase = models.CharField(_("phase"), max_length=24, default=Phase.QUEUING)
    reason_code = models.CharField(_("reason"), max_length=32, default=ReasonCode.NEW)
    reason_params = models.JSONField(_("reason parameters"), default=dict)
    version = models.IntegerField(default=1)
    attempt_number = models.IntegerField(_("attempt"), default=1)
    run_number = models.IntegerField(_("run"), default=1)

    replicas_total = models.IntegerField(_("replicas"), default=1)
    replicas_running = models.IntegerField(_("replicas running"), default=0)
    replicas_failed = models.IntegerField(_("replicas failed"), default=0)
    gpus = models.IntegerField(_("GPUs"), default=0)
    gpu_type = models.CharField(_("GPU type"), max_length=64, blank=True)

    created_at = models.DateTimeField(_("submitted"), db_default=Now())
    started_at = models.DateTimeField(_("started"), null=True, blank=True)
    ended_at = models.DateTimeField(_("ended"), null=True, blank=True)
    deleted_at = models.DateTimeField(_("deleted"), null=True, blank=True)

    description = models.TextField(_("description"), blank=True, default="", db_default="")

    expires_at = models.DateTimeField(_("deleted after retention"), null=True, blank=True)

    tolerates_faults = models.BooleanField(
        _("automatic fault tolerance"), default=False, db_default=False, editable=False
    )

    idle_since = models.DateTimeField(_("idle since"), null=True, blank=True)

    origin = models.ForeignKey("self", models.SET_NULL, null=True, blank=True, related_name="descendants")
    idempotency_key = models.CharField(max_length=255, null=True, blank=True)  # noqa: DJ001 unique with null
    request_digest = models.CharField(max_length=64, blank=True)

    told: Reason | None = None
    """The reason with what its row has not; no column.

    `jobs.lifecycle.pending_reasons` sets current numbers, `jobs.lifecycle.failure_lines` a line of output.
    """

    objects = JobQuerySet.as_manager()

    class Meta:
        verbose_name = _("job")
        verbose_name_plural = _("jobs")
        ordering = ("-id",)
        constraints = (models.UniqueConstraint(fields=("owner", "idempotency_key"), name="one_job_per_key"),)
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=("workspace", "-id"), name="jobs_in_workspace"),
            models.Index(fields=("workspace", "state", "-id"), name="jobs_by_state"),
            models.Index(fields=("owner", "-id"), name="jobs_of_owner"),
            models.Index(fields=("owner", "state", "-id"), name="jobs_of_owner_by_state"),
            models.Index(fields=("owner", "name", "-id"), name="jobs_of_owner_by_name"),
            models.Index(
                fields=("quota", "idle_since"),
                condition=models.Q(state="RUNNING", idle_since__isnull=False),
                name="jobs_idle",
            ),
            models.Index(
                fields=("cluster", "state"),
                condition=~models.Q(state__in=["SUCCEEDED", "FAILED", "STOPPED"]),
                name="jobs_unfinished",
            ),
            models.Index(fields=("ended_at",), condition=models.Q(state="FAILED"), name="jobs_failed"),
            models.Index(fields=("id",), condition=models.Q(deleted_at__isnull=False), name="jobs_deleted"),
            models.Index(
                fields=("expires_at",),
                condition=models.Q(deleted_at=None, expires_at__isnull=False),
                name="jobs_retained",
            ),
            models.Index(
                fields=("workspace", "ended_at"),
                condition=models.Q(deleted_at=None, ended_at__isnull=False),
                name="jobs_ended",
            ),
            models.Index(
                fields=("-created_at", "-id", "workspace"),
                condition=models.Q(deleted_at=None),
                name="jobs_by_creation",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.public_id})"

    @property
    def is_public(self) -> bool:
        """Tell whether the owner opened it to the workspace (`quotas.access.Owned`)."""
        return self.visibility == Visibility.PUBLIC

    @property
    def is_ended(self) -> bool:
        """Tell whether nothing of it runs any more, as far as is known."""
        return State(self.state) in TERMINAL

    @property
    def is_idle(self) -> bool:
        """Tell whether it runs and is known not to use its resources."""
        return self.state == State.RUNNING and self.idle_since is not None

    @property
    def succeeded_with_failures(self) -> bool:
        """Tell whether it succeeded although replicas failed."""
        return self.state == State.SUCCEEDED and self.replicas_failed > 0


class JobFile(models.Model):
    """The file a job came from, apart from the job because lists never need it.

    `text` is as submitted, but for secret values, which are placeholders.  `spec` is the JobSpec as
    JSON; `extras` is what only the dialect understands; `notes` are those of the submission, each with its
    code, pointer and params.
    """

    job = models.OneToOneField(
        Job, models.CASCADE, related_name="file", primary_key=True, verbose_name=_("job")
    )
    text = models.TextField(_("string"))
    spec_json = models.TextField(_("job specification"))
    extras = models.JSONField(_("extras"), default=dict)
    notes = models.JSONField(_("notes"), default=list)

    class Meta:
        verbose_name = _("job file")
        verbose_name_plural = _("job files")

    def __str__(self) -> str:
        return f"{self.job_id}"

    @property
    def spec(self) -> JobSpec:
        """Return the JobSpec that runs; it is parsed once for each text."""
        if self._parsed is None or self._parsed[0] != self.spec_json:
            self._parsed = (self.spec_json, JobSpec.model_validate_json(self.spec_json))
        return self._parsed[1]

    _parsed: tuple[str, JobSpec] | None = None


class Event(models.Model):
    """Something that happened, in the past tense, written in the transaction that made it true.

    The primary key is the order; `at` is the database's time, never an engine's.
    """

    class Kind(models.TextChoices):
        SUBMITTED = "submitted", _("submitted")
        QUEUED_AGAIN = "queued_again", _("requeued")
        ADMITTED = "admitted", _("admitted")
        ACCEPTED = "accepted", _("accepted by the cluster")
        STARTED = "started", _("started")
        REPLICA_STARTED = "task_started", _("replica started")
        REPLICA_ENDED = "task_ended", _("replica ended")
        END_WANTED = "end_wanted", _("stop requested")
        END_ASKED = "end_asked", _("stop sent to cluster")
        REQUEUED = "requeued", _("restarted by the cluster")
        ENDED = "ended", _("ended")
        FOUND_AGAIN = "found_again", _("found again")
        LOST = "lost", _("lost")
        LOGS_SEALED = "logs_sealed", _("logs stored")
        SHARED = "shared", _("visibility changed")
        ENTERED = "entered", _("accessed")
        LEFT = "left", _("disconnected")
        HELD = "held", _("held")
        RELEASED = "released", _("released")
        PRIORITISED = "prioritised", _("priority changed")
        MOVED = "moved", _("moved to another quota")
        REORDERED = "reordered", _("queue order changed")
        TOLD = "told", _("owner notified")
        IDLE_WARNED = "idle_warned", _("idle warning sent")
        STILL_NEEDED = "still_needed", _("marked as still needed")
        EXTENDED = "extended", _("time limit extended")
        NOT_EXTENDED = "not_extended", _("time limit extension failed")
        FAULT = "fault", _("fault detected")
        RESUMED = "resumed", _("resumed from a checkpoint")
        ALERT = "alert", _("alert")

    job = models.ForeignKey(
        Job,
        models.CASCADE,
        related_name="events",
        db_index=False,  # `events_of_job` begins with it
        verbose_name=_("job"),
    )
    kind = models.CharField(_("event"), max_length=16, choices=Kind)
    params = models.JSONField(_("details"), default=dict)
    attempt = models.IntegerField(_("attempt"), default=1)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("by"),
    )
    at = models.DateTimeField(_("time"), db_default=Now())

    class Meta:
        verbose_name = _("event")
        verbose_name_plural = _("events")
        ordering = ("id",)
        indexes = (models.Index(fields=("job", "id"), name="events_of_job"),)

    def __str__(self) -> str:
        return f"{self.job_id} {self.kind}"


class Dependency(models.Model):
    """`job` starts after `other`, once that has become what `when` says.

    It is decided in the transaction that ends `other`, and then stays as it is.  `named` is how the job file
    names the other one.
    """

    class When(models.TextChoices):
        SUCCEEDED = "succeeded", _("Succeeded")
        ENDED = "ended", _("Ended")
        FAILED = "failed", _("Failed")

    class State(models.TextChoices):
        OPEN = "open", _("Open")
        MET = "met", _("Met")
        NEVER = "never", _("Can't be met")

    job = models.ForeignKey(Job, models.CASCADE, related_name="waits_for")
    other = models.ForeignKey(Job, models.SET_NULL, null=True, related_name="waited_for_by")
    named = models.CharField(_("specified job"), max_length=300)
    when = models.CharField(_("condition"), max_length=12, choices=When)
    state = models.CharField(_("state"), max_length=8, choices=State, default=State.OPEN)

    class Meta:
        verbose_name = _("dependency")
        verbose_name_plural = _("dependencies")
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.job_id} {self.when} {self.named}"
