"""Assets that jobs name by an id: images, datasets, code sources, virtual networks, roles.

Each belongs to a workspace, or to nobody and then to everybody.  What jobs have used is retired, not
deleted: it is offered no more, and what the jobs were made of can still be read.
"""

from __future__ import annotations

import json
import re
from enum import StrEnum
from typing import Any, ClassVar, Final, Self

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models.functions import Now
from django.utils.crypto import get_random_string
from django.utils.translation import gettext_lazy as _

from jobs.models.jobs import Job
from jobs.spec import ENV_NAME
from quotas import encryption
from quotas.models import Cluster, Workspace
from quotas.models.audit_base import Audited

KEY_LENGTH: Final = 12
KEY_LETTERS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"

_KEY = RegexValidator(
    r"^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$",
    _("IDs can contain only letters, digits, - and _ (maximum 63 characters)."),
)
_REGION = RegexValidator(r"^[a-z0-9-]+$", _("Not a region's name."))
_ARNS: Final = {
    "alibaba": re.compile(r"acs:ram::[0-9]+:role/[A-Za-z0-9.@_-]+", re.ASCII),
    "aws": re.compile(r"arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]+", re.ASCII),
}
_VARIABLE = RegexValidator(
    ENV_NAME, _("Secret names can contain only letters, digits and _, and can't start with a digit.")
)


class AssetKind(StrEnum):
    """The tables, by the words of addresses and of the API."""

    IMAGE = "images"
    DATASET = "datasets"
    CODE = "code"
    VPC = "vpcs"
    ROLE = "roles"


class Asset(Audited):
    """Base of all assets.  `key` is the id that job files and addresses use.

    Whoever may submit in `workspace` may name it in a job; without one everybody may.
    """

    KIND: ClassVar[AssetKind]
    PREFIX: ClassVar[str]

    key = models.CharField(_("ID"), max_length=63, unique=True, validators=[_KEY])
    name = models.CharField(_("name"), max_length=200)
    description = models.TextField(_("description"), blank=True)
    workspace = models.ForeignKey(
        Workspace,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("workspace"),
        help_text=_("Empty: available to everyone."),
    )
    retired_at = models.DateTimeField(_("retired"), null=True, blank=True, editable=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, editable=False, related_name="+"
    )
    created_at = models.DateTimeField(_("added"), db_default=Now(), editable=False)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        abstract = True
        ordering = ("name", "id")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.pk is None and not self.key:
            self.key = f"{self.PREFIX}-{get_random_string(KEY_LENGTH, KEY_LETTERS)}"

    def __str__(self) -> str:
        return self.name

    @property
    def is_public(self) -> bool:
        """Tell whether it is for everybody."""
        return self.workspace_id is None

    @property
    def is_retired(self) -> bool:
        """Tell whether it is no longer offered."""
        return self.retired_at is not None


class Guarded(Asset):
    """An asset behind a login: a user name, and a password that is kept here or is each person's own secret.

    The kept one is never shown again, and reaches what fetches for a job, never the job itself.
    """

    username = models.CharField(_("user name"), max_length=200, blank=True)
    ciphertext = models.TextField(editable=False, blank=True)
    own_secret = models.CharField(
        _("personal secret name"),
        max_length=200,
        blank=True,
        validators=[_VARIABLE],
        help_text=_("Instead of a shared password: name of a secret that each user has saved in Settings."),
    )

    class Meta:
        abstract = True

    def clean(self) -> None:
        """One password is enough."""
        super().clean()
        if self.ciphertext and self.own_secret:
            raise ValidationError(
                {"own_secret": _("Save a password here or use each person's own, not both.")}
            )

    def encrypt(self, password: str) -> None:
        """Encrypt the password into this row (not saved); '' takes it away."""
        self.ciphertext = encryption.encrypt(password) if password else ""

    def reveal(self) -> str:
        """Return the password, for the backend alone."""
        return encryption.decrypt(self.ciphertext)

    @property
    def has_login(self) -> bool:
        """Tell whether it has a password, here or as a personal secret."""
        return bool(self.ciphertext or self.own_secret)


class Image(Guarded):
    """A container image, or what stands for one on a cluster: an address that a role's image may be."""

    KIND = AssetKind.IMAGE
    PREFIX = "image"

    address = models.CharField(
        _("address"),
        max_length=500,
        help_text=_("Image reference, e.g. registry.example.org/group/name:tag."),
    )
    official = models.BooleanField(
        _("official"),
        default=False,
        help_text=_("Maintained by the console's admins; other images are custom."),
    )
    framework = models.CharField(_("framework"), max_length=100, blank=True)
    version = models.CharField(_("framework version"), max_length=100, blank=True)
    python = models.CharField(_("Python version"), max_length=32, blank=True)
    accelerator = models.CharField(
        _("chip"),
        max_length=100,
        blank=True,
        help_text=_("CPU, GPU, or the GPU type that the image is built for."),
    )
    accelerated = models.BooleanField(
        _("image acceleration"), default=False, help_text=_("Passed to targets that load images on demand.")
    )

    class Meta(Asset.Meta):
        verbose_name = _("image")
        verbose_name_plural = _("images")


class Dataset(Guarded):
    """Data under an id; its versions have the locations."""

    KIND = AssetKind.DATASET
    PREFIX = "d"

    class Source(models.TextChoices):
        """Storage of the data, in the vendors' words."""

        OSS = "oss", _("OSS")
        S3 = "s3", _("S3")
        BOS = "bos", _("BOS")
        NAS = "nas", _("NAS")
        NAS_EXTREME = "extreme_nas", _("Extreme NAS")
        CPFS = "cpfs", _("CPFS")
        BMCPFS = "bmcpfs", _("BMCPFS")
        PFS = "pfs", _("PFS")
        HOST = "host", _("host path")
        HTTP = "http", _("HTTP")
        UPLOAD = "upload", _("files of a job")

    source = models.CharField(_("storage type"), max_length=16, choices=Source, default=Source.OSS)
    mount_path = models.CharField(_("mount path"), max_length=500, default="/mnt/data")
    read_only = models.BooleanField(
        _("read-only"), default=True, help_text=_("Datasets for everyone are always read-only.")
    )
    endpoint = models.CharField(
        _("endpoint"),
        max_length=300,
        blank=True,
        help_text=_("For a custom object store, e.g. https://minio.example.org:9000."),
    )
    region = models.CharField(_("region"), max_length=64, blank=True)
    vpc = models.ForeignKey(
        "jobs.Vpc",
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="datasets",
        verbose_name=_("VPC"),
        help_text=_("VPC of the CPFS file system. Jobs that mount the dataset must use the same VPC."),
    )
    options = models.JSONField(
        _("mount options"), default=dict, blank=True, help_text=_('Example: {"mountType": "ossfs"}.')
    )

    class Meta(Asset.Meta):
        verbose_name = _("dataset")
        verbose_name_plural = _("datasets")

    def clean(self) -> None:
        """Options are texts by names."""
        super().clean()
        options = self.options
        if not isinstance(options, dict) or not all(isinstance(each, str) for each in options.values()):
            raise ValidationError(
                {"options": _('Must be a JSON object with string values, e.g. {"mountType": "ossfs"}.')}
            )

    def version_called(self, number: str) -> DatasetVersion | None:
        """Return the version with the number, written as 2 or v2; the default one for ''."""
        rows = self.versions.all()
        if not number:
            return rows.filter(is_default=True).first()
        digits = number.removeprefix("v")
        if not (digits.isascii() and digits.isdigit() and len(digits) < 9):
            return None
        return rows.filter(number=int(digits)).first()


class DatasetVersion(Audited):
    """Location of one version of a dataset; numbers count from 1, and one version is the default."""

    dataset = models.ForeignKey(Dataset, models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField(_("version"))
    uri = models.CharField(
        _("location"), max_length=1000, help_text=_("oss://bucket/folder/, /data/sets/imagenet, https://…")
    )
    description = models.CharField(_("description"), max_length=500, blank=True)
    is_default = models.BooleanField(_("default"), default=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, editable=False, related_name="+"
    )
    created_at = models.DateTimeField(_("added"), db_default=Now(), editable=False)

    class Meta:
        verbose_name = _("dataset version")
        verbose_name_plural = _("dataset versions")
        ordering = ("-number",)
        constraints = (
            models.UniqueConstraint(fields=("dataset", "number"), name="one_dataset_version"),
            models.UniqueConstraint(
                fields=("dataset",), condition=models.Q(is_default=True), name="one_default_dataset_version"
            ),
        )

    def __str__(self) -> str:
        return f"{self.dataset} v{self.number}"


class DatasetCopy(models.Model):
    """A folder of an ended job that a worker copies into the first version of a dataset.

    The content lies where uploads lie, as an uploaded tree that is kept for as long as this row is.  `path`
    is the folder's path as addresses have it, below `root`.  `code` says why it failed, about `detail`: see
    `jobs.messages.dataset_copies`.
    """

    class State(models.TextChoices):
        WAITING = "waiting", _("queued")
        COPYING = "copying", _("copying")
        READY = "ready", _("ready")
        FAILED = "failed", _("failed")

    dataset = models.OneToOneField(Dataset, models.CASCADE, related_name="copy")
    job = models.ForeignKey(Job, models.SET_NULL, null=True, related_name="+", verbose_name=_("job"))
    replica = models.ForeignKey(
        "jobs.Replica", models.SET_NULL, null=True, related_name="+", verbose_name=_("replica")
    )
    root = models.CharField(max_length=200)
    path = models.TextField(_("folder"), blank=True)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    state = models.CharField(_("state"), max_length=8, choices=State, default=State.WAITING)
    code = models.CharField(max_length=32, blank=True)
    detail = models.CharField(max_length=500, blank=True)
    files = models.PositiveIntegerField(_("files"), default=0)
    size = models.BigIntegerField(_("bytes"), default=0)
    copied = models.BigIntegerField(_("bytes copied"), default=0)
    skipped = models.PositiveIntegerField(_("skipped"), default=0)
    restarts = models.PositiveIntegerField(default=0)
    tree = models.ForeignKey("jobs.UploadedTree", models.PROTECT, null=True, related_name="copies")
    created_at = models.DateTimeField(_("requested"), db_default=Now())
    touched_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("copy of a job's folder")
        verbose_name_plural = _("copies of jobs' folders")
        indexes = (
            models.Index(
                fields=("id",), condition=models.Q(state__in=("waiting", "copying")), name="open_copies"
            ),
        )

    def __str__(self) -> str:
        return f"{self.dataset_id} · {self.state}"

    @property
    def is_open(self) -> bool:
        """Tell whether it is still to be copied."""
        return self.state in {self.State.WAITING, self.State.COPYING}


class CodeSource(Guarded):
    """A git repository under an id."""

    KIND = AssetKind.CODE
    PREFIX = "code"

    repo = models.CharField(
        _("repository"), max_length=500, help_text=_("https://git.example.org/group/name.git, or ssh://…")
    )
    branch = models.CharField(_("branch"), max_length=200, blank=True)
    commit = models.CharField(_("commit"), max_length=64, blank=True)
    mount_path = models.CharField(_("mount path"), max_length=500, default="/root/code")
    submodules = models.BooleanField(
        _("include submodules"),
        default=False,
        help_text=_("Submodules are fetched from the repository's own host."),
    )

    class Meta(Asset.Meta):
        verbose_name = _("code source")
        verbose_name_plural = _("code sources")


class Vpc(Asset):
    """A virtual network of a cloud; carried to the vendors' targets."""

    KIND = AssetKind.VPC
    PREFIX = "net"

    vpc_id = models.CharField(_("VPC ID"), max_length=100, help_text="vpc-…")
    region = models.CharField(_("region"), max_length=64, blank=True)
    cidr = models.CharField(_("CIDR block"), max_length=64, blank=True)
    switches = models.JSONField(
        _("vSwitches"), default=list, blank=True, help_text=_('List, e.g. ["vsw-1", "vsw-2"].')
    )
    security_groups = models.JSONField(
        _("security groups"), default=list, blank=True, help_text=_('List, e.g. ["sg-1"].')
    )

    class Meta(Asset.Meta):
        verbose_name = _("VPC")
        verbose_name_plural = _("VPCs")

    def clean(self) -> None:
        """Lists of names."""
        super().clean()
        for field in ("switches", "security_groups"):
            names = getattr(self, field)
            if not isinstance(names, list) or not all(isinstance(each, str) and each for each in names):
                raise ValidationError({field: _('Must be a list of names, e.g. ["vsw-1"].')})


class RamRoleQuerySet(models.QuerySet["RamRole"]):
    """Roles by who gets credentials of them."""

    def assumable_in(self, workspace: Workspace) -> Self:
        """Return the roles of which running jobs of the workspace get credentials."""
        with_key = ~models.Q(access_key_id="") & ~models.Q(ciphertext="")
        return self.filter(with_key, workspace=workspace, retired_at=None)


class RamRole(Asset):
    """A role of a vendor that a job may have: RAM's of Alibaba Cloud or IAM's of AWS.

    With an access key the console assumes it for running jobs of its workspace, which get credentials for
    `session_s` seconds at a time; without one it is only carried to the vendors' targets.  `policy` is the
    session policy: the role's permissions, cut down to it.
    """

    KIND = AssetKind.ROLE
    PREFIX = "role"

    class Provider(models.TextChoices):
        """Cloud whose STS gives the credentials."""

        ALIBABA = "alibaba", _("Alibaba Cloud")
        AWS = "aws", _("AWS")

    provider = models.CharField(_("provider"), max_length=16, choices=Provider, default=Provider.ALIBABA)
    arn = models.CharField(
        _("ARN"),
        max_length=300,
        help_text=_("acs:ram::1234567890123456:role/name or arn:aws:iam::123456789012:role/name"),
    )
    access_key_id = models.CharField(
        _("access key ID"),
        max_length=128,
        blank=True,
        help_text=_("The key that the console assumes the role with, for running jobs."),
    )
    ciphertext = models.TextField(editable=False, blank=True)
    endpoint = models.CharField(
        _("STS endpoint"),
        max_length=300,
        blank=True,
        help_text=_("Empty: the provider's own. Internal addresses need CONSOLE_EGRESS_HOSTS."),
    )
    region = models.CharField(_("region"), max_length=32, blank=True, validators=[_REGION])
    policy = models.TextField(
        _("session policy"),
        blank=True,
        max_length=2048,
        help_text=_("JSON policy that limits what jobs may do with the role. Empty: all that the role may."),
    )
    session_s = models.PositiveIntegerField(
        _("session duration (s)"),
        default=3600,
        validators=[MinValueValidator(2400), MaxValueValidator(43_200)],
        help_text=_("How long credentials are valid (2400–43200). They are renewed while the job runs."),
    )
    is_default = models.BooleanField(
        _("default"), default=False, help_text=_("The role of jobs that request the default role.")
    )

    objects = RamRoleQuerySet.as_manager()

    class Meta(Asset.Meta):
        verbose_name = _("RAM role")
        verbose_name_plural = _("RAM roles")
        constraints = (
            models.UniqueConstraint(
                fields=("workspace",),
                condition=models.Q(is_default=True),
                name="one_default_role",
                violation_error_message=_("This workspace has a default role already."),
            ),
        )

    def clean(self) -> None:
        """Only one workspace's jobs get credentials of a role, and its policy is a JSON object."""
        super().clean()
        if self.workspace is None and (self.access_key_id or self.is_default):
            raise ValidationError({"workspace": _("A role with an access key needs a workspace.")})
        if self.is_default and not self.access_key_id:
            raise ValidationError({"is_default": _("A default role needs an access key.")})
        if self.access_key_id and not _ARNS[self.provider].fullmatch(self.arn):
            raise ValidationError({"arn": _("Not the ARN of a role of this provider.")})
        if self.policy and not _is_json_object(self.policy):
            raise ValidationError({"policy": _("Must be a JSON object.")})

    def encrypt(self, secret: str) -> None:
        """Encrypt the secret of the access key into this row (not saved)."""
        self.ciphertext = encryption.encrypt(secret)

    def reveal(self) -> str:
        """Return the secret of the access key, for requests to STS alone."""
        return encryption.decrypt(self.ciphertext)


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


class AssetUse(models.Model):
    """Use of an asset by a job, under its id of then.

    `kind` and `key` outlive the asset.  `secret` is the name under which the job's engine is handed the
    asset's kept password; nobody can guess it, so no job file can name it.
    """

    job = models.ForeignKey(Job, models.CASCADE, related_name="asset_uses", verbose_name=_("job"))
    kind = models.CharField(_("kind"), max_length=16)
    key = models.CharField(_("key"), max_length=63)
    version = models.PositiveIntegerField(_("version"), null=True)
    secret = models.CharField(max_length=64, blank=True)

    class Meta:
        verbose_name = _("asset use")
        verbose_name_plural = _("asset uses")
        ordering = ("-id",)
        constraints = (
            models.UniqueConstraint(fields=("job", "kind", "key", "version"), name="one_use_of_asset"),
        )
        indexes = (models.Index(fields=("kind", "key", "-job"), name="asset_users"),)

    def __str__(self) -> str:
        return f"{self.key} v{self.version}" if self.version else self.key


class AssetCheck(models.Model):
    """A check whether an asset can be pulled, read or cloned, which a worker answers.

    `code` is one of `jobs.messages.assets`, `said` the words of the tool that tried.
    """

    class State(models.TextChoices):
        WAITING = "waiting", _("queued")
        TRYING = "trying", _("in progress")
        WORKS = "works", _("test passed")
        FAILED = "failed", _("test failed")

    asker = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="+", verbose_name=_("requested by")
    )
    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="+", verbose_name=_("cluster"))
    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+")
    kind = models.CharField(_("kind"), max_length=16)
    key = models.CharField(_("key"), max_length=63)
    version = models.PositiveIntegerField(_("version"), null=True)
    public_id = models.CharField(max_length=12, unique=True)
    state = models.CharField(_("state"), max_length=8, choices=State, default=State.WAITING)
    code = models.CharField(max_length=32, blank=True)
    said = models.TextField(blank=True)
    created_at = models.DateTimeField(_("created"), db_default=Now())
    begun_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(_("ended"), null=True)

    class Meta:
        verbose_name = _("asset test")
        verbose_name_plural = _("asset tests")
        ordering = ("-id",)
        indexes = (
            models.Index(fields=("kind", "key", "-id"), name="asset_trials"),
            models.Index(fields=("cluster",), condition=models.Q(ended_at=None), name="asset_trials_open"),
        )

    def __str__(self) -> str:
        return f"{self.key} {self.get_state_display()}"

    @property
    def is_over(self) -> bool:
        """Tell whether it was answered."""
        return self.ended_at is not None


ASSETS: Final[dict[AssetKind, type[Asset]]] = {
    model.KIND: model for model in (Image, Dataset, CodeSource, Vpc, RamRole)
}
