"""What is mounted: datasets that the workspace keeps, and storage by its address."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_lazy as _

from jobs.form.fields.base import BOTH, WAS, Kind, Rows, cell, choice_of
from jobs.form.measures import Flag, Pairs
from jobs.spec import MountPurpose

MOUNTS: Final = Rows(
    "mounts",
    "/mounts",
    _("Direct mounts"),
    (
        WAS,
        cell(
            "uri",
            Kind.TEXT,
            _("What is mounted"),
            placeholder="oss://bucket.oss-cn-hangzhou.aliyuncs.com/data/",
        ),
        cell("path", Kind.TEXT, _("Mount path"), placeholder="/mnt/data"),
        cell(
            "purpose",
            Kind.CHOICE,
            _("What it is for"),
            choice_of(MountPurpose, none=False),
            options=(("data", _("Data")), ("output", _("Output")), ("code", _("Code"))),
        ),
        cell("read-only", Kind.FLAG, _("Read-only"), Flag()),
        cell("options", Kind.TEXT, _("Advanced settings"), Pairs(), placeholder='{"mountType":"ossfs"}'),
    ),
    help=_(
        "OSS as oss://bucket.endpoint/folder/, general NAS as nas://id.region/folder/, extreme NAS as "
        "nas://extreme-id.region/folder/, CPFS as cpfs://id.region/folder/, BMCPFS as bmcpfs://id/folder/, "
        "PFS as pfs://id/folder/, or a folder of the host, as /data/set, where the cluster lends it."
    ),
    source=f"{BOTH}: direct mounts",
)

DATASETS: Final = Rows(
    "datasets",
    "/mounts",
    _("Datasets"),
    (
        WAS,
        cell("id", Kind.TEXT, _("Dataset")),
        cell("path", Kind.TEXT, _("Mount path"), placeholder="/mnt/data"),
        cell("read-only", Kind.FLAG, _("Read-only"), Flag()),
        cell("options", Kind.TEXT, _("Advanced settings"), Pairs()),
    ),
    help=_("By the id under which the workspace keeps them. The command finds each at its mount path."),
    source=f"{BOTH}: datasets",
)
