"""Clusters and their nodes."""

from __future__ import annotations

from django.conf import settings
from django.core.validators import MaxValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from quotas.default_names import Titled
from quotas.models.audit_base import Audited


class Admission(models.TextChoices):
    """The scheduler of a cluster: the console, or its own controller."""

    CONSOLE = "console", _("Console")
    ENGINE = "engine", _("Engine")


class Cluster(Titled, Audited):
    """A cluster on which jobs run: the name of a backend, and its settings.

    `set_aside` are the engine's own reservations of nodes as its inventory last reported them: objects of
    `name`, `nodes`, `since`, `until` (seconds since the epoch, null for ever), `whom` and `maintenance`.
    `facilities` is what its jobs find there, as that inventory reported it; null where it did not.
    """

    slug = models.SlugField(_("short name"), max_length=63, unique=True)
    name = models.CharField(_("name"), max_length=200)
    region = models.CharField(
        _("region"),
        max_length=100,
        blank=True,
        help_text=_("Location shown to users, e.g. cn-wulanchabu or building 3."),
    )
    backend = models.CharField(_("backend"), max_length=32, default="local")
    config = models.JSONField(_("settings"), default=dict, blank=True)
    admission = models.CharField(_("scheduler"), max_length=16, choices=Admission, default=Admission.CONSOLE)
    enabled = models.BooleanField(_("accepts jobs"), default=True)
    shows_addresses = models.BooleanField(
        _("show addresses"),
        default=False,
        help_text=_(
            "Shows the IP:port of a job's endpoints to users with access to the job. Useful inside "
            "the cluster's network."
        ),
    )
    cordons_faulty = models.BooleanField(
        _("cordon faulty nodes"),
        default=False,
        db_default=False,
        help_text=_("Cordons a node on which a job with fault tolerance failed by a fault of the node."),
    )
    cordon_percent = models.PositiveSmallIntegerField(
        _("cordoned at most (percent)"),
        default=10,
        db_default=10,
        validators=[MaxValueValidator(100)],
        help_text=_("Share of the nodes that are cordoned automatically, at least one node."),
    )
    frozen_at = models.DateTimeField(_("scheduling paused"), null=True, blank=True, editable=False)
    frozen_why = models.CharField(_("pause reason"), max_length=500, blank=True, editable=False)
    answered_at = models.DateTimeField(_("last response"), null=True, blank=True, editable=False)
    trouble = models.TextField(_("last error"), blank=True, editable=False)
    look_ms = models.PositiveIntegerField(_("last poll (ms)"), null=True, blank=True, editable=False)
    next_look_at = models.DateTimeField(_("next poll"), null=True, blank=True, editable=False)
    set_aside = models.JSONField(_("nodes reserved by the engine"), default=list, blank=True, editable=False)
    facilities = models.JSONField(_("capabilities"), null=True, blank=True, default=None, editable=False)

    class Meta:
        verbose_name = _("cluster")
        verbose_name_plural = _("clusters")
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class GpuType(Audited):
    """A type of GPU under the one name that quotas, prices and pages use; `aliases` are its other names."""

    name = models.CharField(_("name"), max_length=64, unique=True)
    aliases = models.JSONField(
        _("aliases"), default=list, blank=True, help_text=_('List, e.g. ["NVIDIA-A100-SXM4-80GB"].')
    )

    class Meta:
        verbose_name = _("GPU type")
        verbose_name_plural = _("GPU types")
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class NodeState(models.TextChoices):
    """A node's state: an admin's decision, or down."""

    SCHEDULABLE = "schedulable", _("Schedulable")
    CORDONED = "cordoned", _("Cordoned")
    DRAINING = "draining", _("Draining")
    DOWN = "down", _("Down")


class Node(models.Model):
    """One machine of a cluster, as its backend's inventory last reported it.

    `gpus` counts by type; `gpu_list` names each GPU (index, type, memory) for the squares of the page.
    `others` is what is used there and was not started from here (Amounts as JSON).
    `programs` are those that its jobs find without an image, as far as they were looked for; null where
    that is not known.  `partitions` are those of the engine that it belongs to.  `schedulable` and `why` are
    the engine's words; `state` and what belongs to it an admin's, except for DOWN, which is a node that the
    engine no longer reports while something is still held on it.
    """

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="nodes", verbose_name=_("cluster"))
    name = models.CharField(_("name"), max_length=255)
    cpu_milli = models.BigIntegerField(_("CPU (milli-cores)"), default=0)
    memory_mib = models.BigIntegerField(_("memory (MiB)"), default=0)
    gpus = models.JSONField(_("GPUs by type"), default=dict, blank=True)
    gpu_list = models.JSONField(_("GPUs"), default=list, blank=True)
    others = models.JSONField(_("external usage"), default=dict, blank=True)
    programs = models.JSONField(_("installed programs"), null=True, blank=True, default=None)
    partitions = models.JSONField(_("partitions"), default=list, blank=True)
    schedulable = models.BooleanField(_("schedulable"), default=True)
    why = models.CharField(_("unavailability reason"), max_length=500, blank=True)
    state = models.CharField(_("state"), max_length=16, choices=NodeState, default=NodeState.SCHEDULABLE)
    state_why = models.CharField(_("reason"), max_length=500, blank=True)
    state_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("set by"),
    )
    state_at = models.DateTimeField(_("decision time"), null=True, blank=True)
    empty_by = models.DateTimeField(
        _("drain deadline"),
        null=True,
        blank=True,
        help_text=_(
            "Jobs still on the draining node are moved to other nodes at this time. Empty: they "
            "run until they end."
        ),
    )
    seen_at = models.DateTimeField(_("last seen"), null=True, blank=True, editable=False)

    class Meta:
        verbose_name = _("node")
        verbose_name_plural = _("nodes")
        ordering = ("name",)
        constraints = (models.UniqueConstraint(fields=("cluster", "name"), name="one_node"),)

    def __str__(self) -> str:
        return self.name

    @property
    def takes_jobs(self) -> bool:
        """Whether anything may start here."""
        return self.schedulable and self.state == NodeState.SCHEDULABLE

    @property
    def why_not(self) -> str:
        """Why nothing starts here; the admin's words before the engine's."""
        return self.state_why or self.why
