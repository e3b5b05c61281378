"""The environment of a node: image, command, variables, software, code and mounts."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_lazy as _

from jobs.form.fields.base import BOTH, PAGE_ZH, SCM_MANUAL, WAS, Field, FieldKind, Rows, cell, choice_of
from jobs.form.measures import CommandWords, Flag, Lines, Pairs, PlainText
from jobs.spec import MountPurpose

ENVIRONMENT: Final = (
    Field(
        "roles-*-image",
        "/roles/*/image",
        FieldKind.TEXT,
        _("Node image"),
        PlainText(fits=r"\S*", wrong="no_image_name"),
        help=_(
            "An official or custom image, an image address in a registry that the nodes can reach, or a "
            ".sqsh file if the cluster supports it. Private registries need a user name and password."
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
        help=_("Accelerated version of an image in Alibaba's registry; starts while it is pulled."),
        source=f"{BOTH}: image acceleration",
    ),
    Field(
        "registry-registry",
        "/registry_auth/registry",
        FieldKind.TEXT,
        _("Registry"),
        help=_("Empty: the image's registry."),
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
        help=_("One of your saved secrets. Only its name is written to the file."),
        source=f"{BOTH}: private image",
    ),
    Field(
        "registry-password",
        "",
        FieldKind.SECRET,
        _("New registry password"),
        PlainText(strip=False),
        help=_("Saved in your secrets; only its name is written to the file."),
        source=f"{BOTH}: private image",
    ),
    Field(
        "registry-file",
        "/registry_auth/file_uri",
        FieldKind.TEXT,
        _("Authentication file"),
        help=_(
            "A file with the registry address, user name and password; must be readable by the "
            "container engine."
        ),
        source=f"{SCM_MANUAL}: authFile",
    ),
    Field(
        "roles-*-command",
        "/roles/*/command",
        FieldKind.COMMAND,
        _("Start command"),
        PlainText(required=True, strip=False),
        help=_(
            "A shell command, e.g. python train.py. Environment variables are available as $NAME; "
            "type $ to list them. Results written to a mounted dataset are preserved."
        ),
        source=f"{BOTH}: start command",
    ),
    Field(
        "roles-*-shared-paths",
        "/roles/*/shared_paths",
        FieldKind.LONG,
        _("Shared volumes"),
        Lines(),
        help=_("Paths that all containers of a replica share, one per line. The folders are empty at first."),
        source="CreateJob: ExtraPodSpec",
        placeholder="/shared",
    ),
    Field(
        "libraries",
        "/requirements/packages",
        FieldKind.LONG,
        _("Third-party libraries"),
        Lines(),
        help=_("Python packages to install before the command, one per line."),
        source=f"{PAGE_ZH}: third-party libraries, list",
        placeholder="transformers==4.44.0",
    ),
    Field(
        "libraries-folder",
        "/requirements/directory",
        FieldKind.TEXT,
        _("requirements.txt folder"),
        help=_("Alternative to the list: folder in the job that contains requirements.txt."),
        source=f"{PAGE_ZH}: third-party libraries, directory",
        placeholder="/root/code",
    ),
    Field(
        "modules",
        "/software/modules",
        FieldKind.LONG,
        _("Environment modules"),
        Lines(),
        help=_("Loaded with module load before the command, one per line. Must be available on the cluster."),
        source="JobSpec",
        placeholder="cuda/12.4",
    ),
    Field(
        "conda",
        "/software/conda",
        FieldKind.TEXT,
        _("conda environment"),
        help=_("Path of the environment on the node. Can't be combined with a venv."),
        source="JobSpec",
        placeholder="/opt/conda/envs/train",
    ),
    Field(
        "venv",
        "/software/venv",
        FieldKind.TEXT,
        _("Python venv"),
        help=_("Path of the venv on the node."),
        source="JobSpec",
        placeholder="/home/me/venv",
    ),
    Field(
        "code-id",
        "/code/id",
        FieldKind.TEXT,
        _("Registered code"),
        help=_("ID of a code source in the workspace."),
        source=f"{PAGE_ZH}: code, online",
    ),
    Field(
        "code-uri",
        "/code/uri",
        FieldKind.TEXT,
        _("Repository or archive"),
        help=_(
            "A git repository that you can read, an archive (.zip, .tar.gz), or a folder of an object store "
            "or HDFS. Fetched before the command runs."
        ),
        source=f"{PAGE_ZH}: code, online",
        placeholder="https://git.example.com/team/code.git",
    ),
    Field(
        "code-branch",
        "/code/branch",
        FieldKind.TEXT,
        _("Branch"),
        help=_("Empty: default branch."),
        source=f"{PAGE_ZH}: code, online",
    ),
    Field(
        "code-commit",
        "/code/commit",
        FieldKind.TEXT,
        _("Commit"),
        help=_("Empty: latest commit on the branch."),
        source=f"{PAGE_ZH}: code, online",
    ),
    Field(
        "code-path",
        "/code/path",
        FieldKind.TEXT,
        _("Code path"),
        help=_("Folder in the job. Empty: /root/code."),
        source=f"{PAGE_ZH}: code, mount path",
        placeholder="/root/code",
    ),
    Field(
        "code-submodules",
        "/code/submodules",
        FieldKind.FLAG,
        _("Include submodules"),
        Flag(),
        help=_("Submodules on the repository's own host."),
        source="JobSpec",
    ),
)

ENV: Final = Rows(
    "env",
    "/env",
    _("Environment variables"),
    (
        cell("name", FieldKind.TEXT, _("Name")),
        cell("value", FieldKind.TEXT, _("Value"), PlainText(strip=False)),
        cell("secret", FieldKind.CHOICE, _("Or one of my secrets")),
    ),
    help=_("Names and values. PAI-DLC allows up to 20."),
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
            _("Mount source"),
            placeholder="oss://bucket.oss-cn-hangzhou.aliyuncs.com/data/",
        ),
        cell("path", FieldKind.TEXT, _("Mount path"), placeholder="/mnt/data"),
        cell(
            "purpose",
            FieldKind.CHOICE,
            _("Purpose"),
            choice_of(MountPurpose, none=False),
            options=(("data", _("Data")), ("output", _("Output")), ("code", _("Code"))),
        ),
        cell("read-only", FieldKind.FLAG, _("Read-only"), Flag()),
        cell("options", FieldKind.TEXT, _("Advanced settings"), Pairs(), placeholder='{"mountType":"ossfs"}'),
    ),
    help=_(
        "OSS: oss://bucket.endpoint/folder/. General NAS: nas://id.region/folder/. Extreme NAS: "
        "nas://extreme-id.region/folder/. CPFS: cpfs://id.region/folder/. BMCPFS: bmcpfs://id/folder/. PFS: "
        "pfs://id/folder/. Host folder, if the cluster allows it: /data/set."
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
    help=_("Datasets of the workspace, by ID. Each is available at its mount path."),
    source=f"{BOTH}: datasets",
)

_CONTAINER: Final = (
    WAS,
    cell("name", FieldKind.TEXT, _("Name")),
    cell("image", FieldKind.TEXT, _("Image"), PlainText(fits=r"\S*", wrong="no_image_name")),
    cell("command", FieldKind.LONG, _("Command"), CommandWords()),
    cell("env", FieldKind.LONG, _("Environment variables"), Pairs(loosely=False), placeholder="NAME=value"),
)

INIT_CONTAINERS: Final = Rows(
    "roles-*-init-containers",
    "/roles/*/init_containers",
    _("Init containers"),
    _CONTAINER,
    help=_(
        "Run before the start command, in this order; if one fails, the replica fails. Without an image, the "
        "node image is used. The command is a shell command or a JSON list of words. Variables: one per "
        "line; NAME=$SECRET:name uses one of your saved secrets."
    ),
    source="CreateJob: ExtraPodSpec",
)

SIDECARS: Final = Rows(
    "roles-*-sidecars",
    "/roles/*/sidecars",
    _("Sidecars"),
    _CONTAINER,
    help=_("Run beside the start command and stop when it ends. Same fields as init containers."),
    source="CreateJob: ExtraPodSpec",
)
