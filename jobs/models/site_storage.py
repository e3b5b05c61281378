"""Storage mappings: what this site has for the ids and addresses of storage in job files."""

from __future__ import annotations

import posixpath
import re
from typing import Any, ClassVar, Final

from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from jobs.facilities import STORES, local_path, split_data, without_login
from quotas import encryption
from quotas.models import Cluster, Workspace
from quotas.models.audit_base import Audited

_ADDRESS: Final = re.compile(r"[^\s\x00-\x1f\x7f]+")
_MOUNT_PATH = RegexValidator(r"^/", _("Enter an absolute path."))


def check_folder(value: str) -> None:
    """Refuse what is no absolute path of a folder.  Raises ValidationError."""
    path = local_path(value)
    if path is None or not value.isprintable() or ".." in path.split("/") or posixpath.normpath(path) == "/":
        raise ValidationError(_("Enter the absolute path of a folder on the nodes."))


def check_address(value: str) -> None:
    """Refuse what no job file could name.  Raises ValidationError."""
    if not _ADDRESS.fullmatch(value) or without_login(value) != value:
        raise ValidationError(
            _("Enter an address without a login, e.g. oss://bucket/folder or nas://, or an ID.")
        )


class SiteStorage(Audited):
    """An id or address of storage that job files name, and the folder or bucket that it is on this site.

    The longest address around a job's own applies.  `ciphertext` is the bucket's secret key, never shown
    again.  `test_results` are those of the last test from the console's host, at `tested_at`: objects of
    `place`, `code` and `detail` (`jobs.messages.storage`).
    """

    TEST_FIELDS: ClassVar[tuple[str, ...]] = ("test_results", "tested_at")

    name = models.CharField(_("name"), max_length=200, unique=True)
    address = models.CharField(
        _("address or ID"),
        max_length=1000,
        validators=[check_address],
        help_text=_(
            "As job files name it: pfs://pfs-1, nas://, oss://bucket.oss-cn-hangzhou.aliyuncs.com/sets or a "
            "dataset ID. An address also covers everything below it; the longest one applies."
        ),
    )
    folder = models.CharField(
        _("folder"),
        max_length=1000,
        blank=True,
        validators=[check_folder],
        help_text=_(
            "Folder on the nodes, e.g. where an NFS export is mounted. On this machine it also has to be one "
            "of the cluster's mountable folders."
        ),
    )
    bucket = models.CharField(
        _("bucket"),
        max_length=1000,
        blank=True,
        help_text=_("Instead of a folder: s3://bucket/folder, oss://bucket or bos://bucket."),
    )
    endpoint = models.CharField(
        _("endpoint"), max_length=500, blank=True, help_text=_("Example: https://minio.example.org:9000.")
    )
    region = models.CharField(_("region"), max_length=64, blank=True)
    access_key = models.CharField(_("access key"), max_length=200, blank=True)
    ciphertext = models.TextField(editable=False, blank=True)
    mount_path = models.CharField(
        _("default mount path"),
        max_length=500,
        blank=True,
        validators=[_MOUNT_PATH],
        help_text=_("Used if the job file has no mount path."),
    )
    read_only = models.BooleanField(_("read-only"), default=False)
    all_workspaces = models.BooleanField(_("all workspaces"), default=True)
    workspaces = models.ManyToManyField(
        Workspace,
        blank=True,
        related_name="+",
        verbose_name=_("workspaces"),
        help_text=_("Whose jobs can use it, if not those of all workspaces."),
    )
    all_clusters = models.BooleanField(
        _("all clusters"),
        default=True,
        help_text=_("If not, only the clusters below. A cluster below can have a folder of its own."),
    )
    tested_at = models.DateTimeField(_("tested"), null=True, blank=True, editable=False)
    test_results = models.JSONField(_("test"), default=list, blank=True, editable=False)

    class Meta:
        verbose_name = _("storage mapping")
        verbose_name_plural = _("storage mappings")
        ordering = ("address", "name")

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Refuse what is neither a folder nor an address of an object store."""
        super().clean()
        if bool(self.folder) == bool(self.bucket):
            raise ValidationError({"folder": _("Enter a folder or a bucket, not both.")})
        if self.bucket:
            parts = split_data(self.bucket)
            if parts is None or parts.scheme not in STORES or without_login(self.bucket) != self.bucket:
                text = _("Enter the address of an object store without a login, e.g. s3://bucket/folder.")
                raise ValidationError({"bucket": text})

    def encrypt(self, secret_key: str) -> None:
        """Encrypt the secret key into this row (not saved); '' takes it away."""
        self.ciphertext = encryption.encrypt(secret_key) if secret_key else ""

    def reveal(self) -> str:
        """Return the secret key, for what copies data alone.  Raises encryption.Unreadable."""
        return encryption.decrypt(self.ciphertext) if self.ciphertext else ""

    def describe_target(self) -> dict[str, Any]:
        """Return the columns that decide where the secret key is sent."""
        return {"bucket": self.bucket, "endpoint": self.endpoint, "region": self.region}


class SiteStorageCluster(Audited):
    """A cluster that has a storage mapping, with a `folder` of its own where that differs."""

    storage = models.ForeignKey(SiteStorage, models.CASCADE, related_name="clusters")
    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="+", verbose_name=_("cluster"))
    folder = models.CharField(
        _("folder"),
        max_length=1000,
        blank=True,
        validators=[check_folder],
        help_text=_("If it differs on this cluster."),
    )

    class Meta:
        verbose_name = _("cluster of a storage mapping")
        verbose_name_plural = _("clusters of storage mappings")
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=("storage", "cluster"), name="one_storage_of_a_cluster"),
        ]

    def __str__(self) -> str:
        return f"{self.storage} · {self.cluster}"
