"""Attempts (starts by the console), their runs (restarts by the backend), replicas and endpoints."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from jobs.models.jobs import Job
from jobs.states import REPLICA_TERMINAL, EndKind, PortSource, ReplicaState, Unready


class Attempt(models.Model):
    """One start of a job, under one key at the engine.

    Intent and fact have different columns and different writers: `end_*` say that somebody wants the
    end (first writer wins), `ended_at` that it was observed.  `lease_*` belong to whoever is
    submitting; `live` marks what `observe` must look at.  `extended_s` was added to its longest running time,
    and `extended_told_s` of it the engine knows.  `endpoint_token` is encrypted; what listens on
    the attempt's ports may ask for it, and the console's links carry it.  `confided` has, encrypted, the
    secrets that the attempt was sent with: they are masked in its logs.  `fault` is a
    `jobs.fault_tolerance.decisions.Fault`.  `resumed_from` is the checkpoint that it resumed from, which was
    saved at `checkpoint_at` by the backend's clock.
    """

    job = models.ForeignKey(Job, models.CASCADE, related_name="attempts", verbose_name=_("job"))
    number = models.IntegerField(_("number"), default=1)
    key = models.CharField(_("key"), max_length=63, unique=True)
    handle = models.CharField(_("handle"), max_length=500, blank=True)
    live = models.BooleanField(_("live"), default=False)

    endpoint_token = models.CharField(max_length=300, blank=True, editable=False)
    confided = models.TextField(blank=True, default="", editable=False)

    end_kind = models.CharField(
        _("stop type"), max_length=16, blank=True, choices=[(k.value, k.value) for k in EndKind]
    )
    end_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    end_why = models.CharField(_("stop reason"), max_length=500, blank=True)
    end_at = models.DateTimeField(_("stop requested at"), null=True, blank=True)
    end_asked_at = models.DateTimeField(_("stop sent to engine"), null=True, blank=True)

    lease_token = models.CharField(max_length=32, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    observed_version = models.CharField(max_length=64, blank=True)
    gone_count = models.SmallIntegerField(default=0)

    extended_s = models.IntegerField(_("time added (s)"), default=0, db_default=0)
    extended_told_s = models.IntegerField(default=0, db_default=0, editable=False)

    reason_code = models.CharField(_("reason"), max_length=32, blank=True)
    reason_params = models.JSONField(_("reason parameters"), default=dict)
    fault = models.JSONField(_("fault"), null=True, blank=True)
    resumed_from = models.CharField(
        _("resumed from checkpoint"), max_length=255, blank=True, default="", db_default=""
    )
    checkpoint_at = models.DateTimeField(_("checkpoint saved"), null=True, blank=True)
    created_at = models.DateTimeField(_("created"), db_default=Now())
    submitted_at = models.DateTimeField(_("sent to cluster"), null=True, blank=True)
    started_at = models.DateTimeField(_("started"), null=True, blank=True)
    ended_at = models.DateTimeField(_("ended"), null=True, blank=True)
    logs_sealed_at = models.DateTimeField(_("logs finalized"), null=True, blank=True)
    kept_until = models.DateTimeField(_("folders retained until"), null=True, blank=True)
    forgotten_at = models.DateTimeField(_("removed from the engine"), null=True, blank=True)

    class Meta:
        verbose_name = _("attempt")
        verbose_name_plural = _("attempts")
        ordering = ("job", "number")
        constraints = (models.UniqueConstraint(fields=("job", "number"), name="one_attempt"),)
        indexes = (
            models.Index(fields=("id",), condition=models.Q(live=True), name="attempts_live"),
            models.Index(
                fields=("kept_until",),
                condition=models.Q(ended_at__isnull=False, forgotten_at=None),
                name="attempts_to_tidy",
            ),
            models.Index(
                fields=("ended_at",), condition=models.Q(fault__isnull=False), name="attempts_with_fault"
            ),
            models.Index(
                fields=("ended_at",),
                condition=models.Q(ended_at__isnull=False, logs_sealed_at=None),
                name="attempts_to_seal",
            ),
            models.Index(fields=("ended_at",), name="attempts_ended"),
            models.Index(fields=("handle",), name="attempts_by_handle"),
        )

    def __str__(self) -> str:
        return self.key

    @property
    def end_wanted(self) -> EndKind | None:
        """Return why the end is wanted, if it is."""
        return EndKind(self.end_kind) if self.end_kind else None


class Run(models.Model):
    """One run of an attempt; the engine's own requeue begins the next."""

    attempt = models.ForeignKey(Attempt, models.CASCADE, related_name="runs", verbose_name=_("attempt"))
    number = models.IntegerField(_("number"), default=1)
    started_at = models.DateTimeField(_("started"), null=True, blank=True)
    ended_at = models.DateTimeField(_("ended"), null=True, blank=True)

    class Meta:
        verbose_name = _("run")
        verbose_name_plural = _("runs")
        ordering = ("attempt", "number")
        constraints = (models.UniqueConstraint(fields=("attempt", "number"), name="one_run"),)

    def __str__(self) -> str:
        return f"{self.attempt} · {self.number}"


class Replica(models.Model):
    """One replica as last observed.

    `ordinal` is its place among all replicas of the run, so that a page of 2,000 of them is a range of
    a key.
    """

    attempt = models.ForeignKey(Attempt, models.CASCADE, related_name="replicas", verbose_name=_("attempt"))
    run = models.IntegerField(_("run"), default=1)
    ordinal = models.IntegerField(default=0)
    role = models.CharField(_("role"), max_length=255)
    index = models.IntegerField(_("index"), default=0)
    state = models.CharField(
        _("state"),
        max_length=12,
        choices=[(s.value, s.value) for s in ReplicaState],
        default=ReplicaState.WAITING,
    )
    reason_code = models.CharField(_("reason"), max_length=32, blank=True)
    reason_params = models.JSONField(_("reason parameters"), default=dict)
    exit_code = models.IntegerField(_("exit code"), null=True, blank=True)
    signal = models.IntegerField(_("signal"), null=True, blank=True)
    node = models.CharField(_("node"), max_length=255, blank=True)
    image_used = models.BooleanField(_("image used"), null=True, blank=True)
    commit = models.CharField(_("code commit"), max_length=64, blank=True, default="")
    started_at = models.DateTimeField(_("started"), null=True, blank=True)
    ended_at = models.DateTimeField(_("ended"), null=True, blank=True)

    class Meta:
        verbose_name = _("replica")
        verbose_name_plural = _("replicas")
        ordering = ("attempt", "run", "ordinal")
        constraints = (
            models.UniqueConstraint(fields=("attempt", "run", "role", "index"), name="one_task"),
            models.UniqueConstraint(fields=("attempt", "run", "ordinal"), name="one_task_ordinal"),
        )

    def __str__(self) -> str:
        return f"{self.role}-{self.index}"


class Endpoint(models.Model):
    """A port of a replica, reached through the gateway as `<slug>.<apps domain>`.

    `slug` is random: a name that can't be guessed, and a DNS label whatever the port label was.  `path` is
    where the job says to begin, `token_name` under which name it wants the link's token in the query.
    """

    class Source(models.TextChoices):
        """`jobs.states.PortSource`."""

        ASKED = PortSource.ASKED.value, _("declared by the job")
        ANNOUNCED = PortSource.ANNOUNCED.value, _("announced by the job")
        FOUND = PortSource.FOUND.value, _("detected")

    replica = models.ForeignKey(Replica, models.CASCADE, related_name="endpoints", verbose_name=_("replica"))
    label = models.CharField(_("label"), max_length=255)
    ordinal = models.IntegerField(default=0)
    slug = models.SlugField(_("hostname"), max_length=63, unique=True)
    host = models.CharField(_("host"), max_length=255)
    port = models.IntegerField(_("port"))
    ready = models.BooleanField(_("ready"), default=False)
    source = models.CharField(_("discovery"), max_length=16, choices=Source, default=Source.ASKED)
    path = models.CharField(_("path"), max_length=500, blank=True)
    token_name = models.CharField(_("token name"), max_length=32, blank=True)
    why = models.CharField(_("unavailability reason"), max_length=16, blank=True)
    why_params = models.JSONField(default=dict, blank=True)

    class Meta:
        verbose_name = _("endpoint")
        verbose_name_plural = _("endpoints")
        ordering = ("replica", "label", "ordinal")
        constraints = (models.UniqueConstraint(fields=("replica", "label", "ordinal"), name="one_endpoint"),)

    def __str__(self) -> str:
        return self.slug

    def lacks(self, replica: Replica) -> str:
        """Return why the endpoint is not ready, a code of `jobs.states.Unready`; empty when it is ready.

        `replica` is its own, which the caller has at hand.
        """
        if ReplicaState(replica.state) in REPLICA_TERMINAL:
            return Unready.ENDED
        if replica.state != ReplicaState.RUNNING:
            return Unready.WAITING
        return "" if self.ready else self.why or Unready.SILENT


class EndpointVisit(models.Model):
    """One person's way from the console to an endpoint: first a ticket, then a cookie.

    `secret` is the SHA-256 of the ticket until `entered_at`, and of the cookie from then on; neither is
    kept.  `browser` is the SHA-256 of what only the browser that asked for the ticket holds.  A visit is
    worth nothing once the sign-in it came from (`session_key`) is over.
    """

    endpoint = models.ForeignKey(Endpoint, models.CASCADE, related_name="visits", verbose_name=_("endpoint"))
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="+", verbose_name=_("user")
    )
    session_key = models.CharField(max_length=40, editable=False)
    browser = models.CharField(max_length=64, editable=False)
    secret = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(_("created"), db_default=Now())
    entered_at = models.DateTimeField(_("accessed"), null=True, blank=True)
    seen_at = models.DateTimeField(_("last used"), null=True, blank=True)

    class Meta:
        verbose_name = _("endpoint visit")
        verbose_name_plural = _("endpoint visits")
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.user} → {self.endpoint}"
