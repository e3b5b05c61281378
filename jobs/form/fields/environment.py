"""The environment of a node: image, command, variables, software, code and mounts."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_lazy as _

from jobs.form.fields.base import BOTH, PAGE_ZH, SCM_MANUAL, WAS, Field, FieldKind, Rows, cell, choice_of
from jobs.form.measures import Flag, Lines, Pairs, PlainText
from jobs.spec import MountPurpose

ENVIRONMENT: Final = (
    Field(
        "roles-*-image",
        "/roles/*/image",
        FieldKind.TEXT,
        _("Node image"),
        PlainText(fits=r"\S*", wrong="no_image_name"),
        help=_(
            "What the nodes start from: an official or custom image, or the address of one in a registry "
            "that the nodes can reach, or a .sqsh file where the cluster takes those. An image in a private "
            "registry needs a user name and a password."
        ),
        source=f"{BOTH}: node image",
        placeholder="registry.example.com/team/image:tag",
    ),
    Field(
        "roles-*-accelerated",
        "",
        FieldKind.FLAG,
        _("Image acceleration"),
        Flag(),
        help=_("The accelerated edition of an image in Alibaba's registry, which starts while it is pulled."),
        source=f"{BOTH}: image acceleration",
    ),
    Field(
        "registry-registry",
        "/registry_auth/registry",
        FieldKind.TEXT,
        _("Registry"),
        help=_("Empty: the registry of the image."),
        source=f"{BOTH}: private image",
    ),
    Field(
        "registry-username",
        "/registry_auth/username",
        FieldKind.TEXT,
        _("Registry user name"),
        source=f"{BOTH}: private image",
    ),
    Field(
        "registry-secret",
        "/registry_auth/password",
        FieldKind.CHOICE,
        _("Registry password"),
        PlainText(),
        help=_("One of your saved secrets. The file only names it."),
        source=f"{BOTH}: private image",
    ),
    Field(
        "registry-password",
        "",
        FieldKind.SECRET,
        _("New registry password"),
        PlainText(strip=False),
        help=_("It is saved among your secrets, and only its name is written into the file."),
        source=f"{BOTH}: private image",
    ),
    Field(
        "registry-file",
        "/registry_auth/file_uri",
        FieldKind.TEXT,
        _("Authentication file"),
        help=_("A file that the engine can read, with the registry's address, user and password."),
        source=f"{SCM_MANUAL}: authFile",
    ),
    Field(
        "roles-*-command",
        "/roles/*/command",
        FieldKind.COMMAND,
        _("Start command"),
        PlainText(required=True, strip=False),
        help=_(
            "A shell command, as in python train.py. What the console puts into the environment is there "
            "as $NAME; type $ to see the names. Results written where a dataset is mounted stay."
        ),
        source=f"{BOTH}: start command",
    ),
    Field(
        "libraries",
        "/requirements/packages",
        FieldKind.LONG,
        _("Third-party libraries"),
        Lines(),
        help=_("Python packages that are installed before the command, one a line."),
        source=f"{PAGE_ZH}: third-party libraries, list",
        placeholder="transformers==4.44.0",
    ),
    Field(
        "libraries-folder",
        "/requirements/directory",
        FieldKind.TEXT,
        _("Folder of requirements.txt"),
        help=_("Instead of a list: the folder inside the job where a requirements.txt is."),
        source=f"{PAGE_ZH}: third-party libraries, directory",
        placeholder="/root/code",
    ),
    Field(
        "modules",
        "/software/modules",
        FieldKind.LONG,
        _("Environment modules"),
        Lines(),
        help=_("Loaded with module load before the command, one a line, where the cluster has them."),
        source="JobSpec",
        placeholder="cuda/12.4",
    ),
    Field(
        "conda",
        "/software/conda",
        FieldKind.TEXT,
        _("conda environment"),
        help=_("The environment's folder where the job runs. A job has this or a venv."),
        source="JobSpec",
        placeholder="/opt/conda/envs/train",
    ),
    Field(
        "venv",
        "/software/venv",
        FieldKind.TEXT,
        _("Python venv"),
        help=_("The venv's folder where the job runs."),
        source="JobSpec",
        placeholder="/home/me/venv",
    ),
    Field(
        "code-id",
        "/code/id",
        FieldKind.TEXT,
        _("Registered code"),
        help=_("The id of a code source that the workspace keeps."),
        source=f"{PAGE_ZH}: code, online",
    ),
    Field(
        "code-uri",
        "/code/uri",
        FieldKind.TEXT,
        _("Repository"),
        help=_("The address of a git repository that you may read. It is fetched before the command."),
        source=f"{PAGE_ZH}: code, online",
        placeholder="https://git.example.com/team/code.git",
    ),
    Field(
        "code-branch",
        "/code/branch",
        FieldKind.TEXT,
        _("Branch"),
        help=_("Empty: the repository's own."),
        source=f"{PAGE_ZH}: code, online",
    ),
    Field(
        "code-commit",
        "/code/commit",
        FieldKind.TEXT,
        _("Commit"),
        help=_("Empty: the newest of the branch."),
        source=f"{PAGE_ZH}: code, online",
    ),
    Field(
        "code-path",
        "/code/path",
        FieldKind.TEXT,
        _("Where the code appears"),
        help=_("The folder inside the job. Empty: /root/code."),
        source=f"{PAGE_ZH}: code, mount path",
        placeholder="/root/code",
    ),
)

ENV: Final = Rows(
    "env",
    "/env",
    _("Environment variables"),
    (
        cell("name", FieldKind.TEXT, _("Name")),
        cell("value", FieldKind.TEXT, _("Value"), PlainText(strip=False)),
        cell("secret", FieldKind.CHOICE, _("or one of my secrets")),
    ),
    help=_("Settings for the command, as names and values. PAI-DLC takes up to 20."),
    source=f"{PAGE_ZH}: environment variables",
)


MOUNTS: Final = Rows(
    "mounts",
    "/mounts",
    _("Direct mounts"),
    (
        WAS,
        cell(
            "uri",
            FieldKind.TEXT,
            _("What is mounted"),
            placeholder="oss://bucket.oss-cn-hangzhou.aliyuncs.com/data/",
        ),
        cell("path", FieldKind.TEXT, _("Mount path"), placeholder="/mnt/data"),
        cell(
            "purpose",
            FieldKind.CHOICE,
            _("What it is for"),
            choice_of(MountPurpose, none=False),
            options=(("data", _("Data")), ("output", _("Output")), ("code", _("Code"))),
        ),
        cell("read-only", FieldKind.FLAG, _("Read-only"), Flag()),
        cell("options", FieldKind.TEXT, _("Advanced settings"), Pairs(), placeholder='{"mountType":"ossfs"}'),
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
        cell("id", FieldKind.TEXT, _("Dataset")),
        cell("path", FieldKind.TEXT, _("Mount path"), placeholder="/mnt/data"),
        cell("read-only", FieldKind.FLAG, _("Read-only"), Flag()),
        cell("options", FieldKind.TEXT, _("Advanced settings"), Pairs()),
    ),
    help=_("By the id under which the workspace keeps them. The command finds each at its mount path."),
    source=f"{BOTH}: datasets",
)
