"""Files that people sent, by their content; and the trees of them that jobs run."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from jobs.models.jobs import Job


class StoredObject(models.Model):
    """Something in the storage of uploads: one large file, a pack of small ones, or a tree's manifest.

    The row comes before the object and goes after it, so that nothing lies there unknown.
    """

    name = models.CharField(max_length=100, unique=True)
    created_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return self.name


class Blob(models.Model):
    """Some content: `size` bytes from `offset` on in an object.

    It is kept until `kept_until`, which moves on as long as anybody uses it.
    """

    sha256 = models.CharField(max_length=64, unique=True)
    size = models.BigIntegerField(_("bytes"))
    stored = models.ForeignKey(StoredObject, models.PROTECT, related_name="blobs")
    offset = models.BigIntegerField(default=0)
    kept_until = models.DateTimeField(db_index=True)

    class Meta:
        verbose_name = _("uploaded content")
        verbose_name_plural = _("uploaded contents")

    def __str__(self) -> str:
        return self.sha256


class HeldBlob(models.Model):
    """A person sent this content: for nobody else it is there because of that."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    blob = models.ForeignKey(Blob, models.CASCADE, related_name="held")
    kept_until = models.DateTimeField(db_index=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("person", "blob"), name="one_hold_of_content"),)

    def __str__(self) -> str:
        return f"{self.person_id} · {self.blob_id}"


class UploadedTree(models.Model):
    """A tree of uploaded files; `sha256` is its id."""

    sha256 = models.CharField(_("ID"), max_length=64, unique=True)
    files = models.IntegerField(_("files"))
    size = models.BigIntegerField(_("bytes"))
    manifest = models.ForeignKey(StoredObject, models.PROTECT, related_name="trees")
    created_at = models.DateTimeField(_("created"), db_default=Now())
    kept_until = models.DateTimeField(db_index=True)

    people = models.ManyToManyField(settings.AUTH_USER_MODEL, through="HeldTree", related_name="+")

    class Meta:
        verbose_name = _("uploaded tree")
        verbose_name_plural = _("uploaded trees")

    def __str__(self) -> str:
        return self.sha256


class HeldTree(models.Model):
    """A person sent all of this tree."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    tree = models.ForeignKey(UploadedTree, models.CASCADE, related_name="held")

    class Meta:
        constraints = (models.UniqueConstraint(fields=("person", "tree"), name="one_hold_of_a_tree"),)

    def __str__(self) -> str:
        return f"{self.person_id} · {self.tree_id}"


class TreeUse(models.Model):
    """A job has the tree in it, and keeps it for as long as there is the job."""

    tree = models.ForeignKey(UploadedTree, models.PROTECT, related_name="uses")
    job = models.ForeignKey(Job, models.CASCADE, related_name="trees")

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=("tree", "job"), name="one_use_of_a_tree")
        ]

    def __str__(self) -> str:
        return f"{self.job_id} · {self.tree_id}"
