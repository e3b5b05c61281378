"""Jobs, and the files they were submitted as."""

from __future__ import annotations

import secrets
import string
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from jobs.spec import JobSpec
from jobs.states import TERMINAL, Phase, Reason, ReasonCode, State
from quotas.access import Visitor, workspaces_of
from quotas.models import Cluster, Quota, Workspace

ALPHABET = string.ascii_lowercase + string.digits
PUBLIC_ID_LENGTH = 12


def new_public_id() -> str:
    """12 characters a–z 0–9, 62 bits: not to be guessed, and part of DNS labels."""
    return "".join(secrets.choice(ALPHABET) for _i in range(PUBLIC_ID_LENGTH))


class Visibility(models.TextChoices):
    """DLC's Accessibility."""

    PRIVATE = "PRIVATE", _("Private")
    PUBLIC = "PUBLIC", _("Public in the workspace")


class JobQuerySet(models.QuerySet["Job"]):
    """Every page, API, stream and file starts at `visible_to`."""

    def visible_to(self, user: Visitor) -> Self:
        """Jobs of the person's workspaces, without the deleted ones."""
        return self.filter(workspace__in=workspaces_of(user), deleted_at=None)


class Job(models.Model):
    """One job, through all its attempts.  Only `jobs.lifecycle.transitions` writes `state` and its kin.

    `attempt` and `run` are the current ones; `tasks_*` are counts over the current run, so that a
    list of jobs touches no other table.
    """

    public_id = models.CharField(_("id"), max_length=16, unique=True, default=new_public_id)
    name = models.CharField(_("name"), max_length=256)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, related_name="jobs", verbose_name=_("owner")
    )
    workspace = models.ForeignKey(Workspace, models.PROTECT, related_name="jobs", verbose_name=_("workspace"))
    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="jobs", verbose_name=_("cluster"))
    quota = models.ForeignKey(Quota, models.PROTECT, related_name="jobs")
    visibility = models.CharField(
        _("visibility"), max_length=8, choices=Visibility, default=Visibility.PRIVATE
    )
    dialect = models.CharField(_("dialect"), max_length=32)
    priority = models.SmallIntegerField(_("priority"), default=1)

    state = models.CharField(
        _("state"), max_length=12, choices=[(s.value, s.value) for s in State], default=State.QUEUED
    )
    phase = models.CharField(_("phase"), max_length=24, default=Phase.QUEUING)
    reason_code = models.CharField(_("reason"), max_length=32, default=ReasonCode.NEW)
    reason_params = models.JSONField(_("reason, parameters"), default=dict)
    version = models.IntegerField(default=1)
    attempt_number = models.IntegerField(_("attempt"), default=1)
    run_number = models.IntegerField(_("run"), default=1)

    tasks_total = models.IntegerField(_("replicas"), default=1)
    tasks_running = models.IntegerField(_("replicas running"), default=0)
    tasks_failed = models.IntegerField(_("replicas failed"), default=0)
    gpus = models.IntegerField(_("GPUs"), default=0)
    gpu_type = models.CharField(_("GPU type"), max_length=64, blank=True)

    created_at = models.DateTimeField(_("submitted"), db_default=Now())
    started_at = models.DateTimeField(_("started"), null=True, blank=True)
    ended_at = models.DateTimeField(_("ended"), null=True, blank=True)
    deleted_at = models.DateTimeField(_("deleted"), null=True, blank=True)

    idle_since = models.DateTimeField(_("idle since"), null=True, blank=True)

    origin = models.ForeignKey("self", models.SET_NULL, null=True, blank=True, related_name="descendants")
    idempotency_key = models.CharField(max_length=255, null=True, blank=True)  # noqa: DJ001 unique with null
    request_digest = models.CharField(max_length=64, blank=True)

    told: Reason | None = None
    """Why it waits with the numbers of the moment, once `jobs.lifecycle.waiting` was asked; no column."""

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
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.public_id})"

    @property
    def is_public(self) -> bool:
        """Whether the owner opened it to the workspace (`quotas.access.Owned`)."""
        return self.visibility == Visibility.PUBLIC

    @property
    def is_ended(self) -> bool:
        """Whether nothing of it runs any more, as far as is known."""
        return State(self.state) in TERMINAL

    @property
    def is_idle(self) -> bool:
        """Whether it runs and is known not to use what it holds."""
        return self.state == State.RUNNING and self.idle_since is not None

    @property
    def succeeded_with_failures(self) -> bool:
        """A success in which replicas failed: shown and notified as such."""
        return self.state == State.SUCCEEDED and self.tasks_failed > 0


class JobFile(models.Model):
    """The file a job came from, apart from the job because lists never need it.

    `text` is as submitted, but for secret values, which are placeholders.  `spec` is the JobSpec as
    JSON; `extras` is what only the dialect understands; `notes` is what was told at submission.
    """

    job = models.OneToOneField(
        Job, models.CASCADE, related_name="file", primary_key=True, verbose_name=_("job")
    )
    text = models.TextField(_("text"))
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
        """The JobSpec that runs."""
        return JobSpec.model_validate_json(self.spec_json)

    def note_rows(self) -> list[Mapping[str, Any]]:
        """The stored notes: {"code", "pointer", "params"}."""
        return list(self.notes)
