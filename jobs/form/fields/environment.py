"""What a node finds when it starts: image, command, variables, software and code."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_lazy as _

from jobs.form.fields.base import BOTH, SEED_SCM, SEED_ZH, Field, Kind, Rows, cell
from jobs.form.measures import Flag, Lines, Text

ENVIRONMENT: Final = (
    Field(
        "roles-*-image",
        "/roles/*/image",
        Kind.TEXT,
        _("Node image"),
        Text(fits=r"\S*", wrong="no_image_name"),
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
        Kind.FLAG,
        _("Image acceleration"),
        Flag(),
        help=_("The accelerated edition of an image in Alibaba's registry, which starts while it is pulled."),
        source=f"{BOTH}: image acceleration",
    ),
    Field(
        "registry-registry",
        "/registry_auth/registry",
        Kind.TEXT,
        _("Registry"),
        help=_("Empty: the registry of the image."),
        source=f"{BOTH}: private image",
    ),
    Field(
        "registry-username",
        "/registry_auth/username",
        Kind.TEXT,
        _("Registry user name"),
        source=f"{BOTH}: private image",
    ),
    Field(
        "registry-secret",
        "/registry_auth/password",
        Kind.CHOICE,
        _("Registry password"),
        Text(),
        help=_("One of your saved secrets. The file only names it."),
        source=f"{BOTH}: private image",
    ),
    Field(
        "registry-password",
        "",
        Kind.SECRET,
        _("New registry password"),
        Text(strip=False),
        help=_("It is saved among your secrets, and only its name is written into the file."),
        source=f"{BOTH}: private image",
    ),
    Field(
        "registry-file",
        "/registry_auth/file_uri",
        Kind.TEXT,
        _("Authentication file"),
        help=_("A file that the engine can read, with the registry's address, user and password."),
        source=f"{SEED_SCM}: authFile",
    ),
    Field(
        "roles-*-command",
        "/roles/*/command",
        Kind.COMMAND,
        _("Start command"),
        Text(required=True, strip=False),
        help=_(
            "A shell command, as in python train.py. What the console puts into the environment is there "
            "as $NAME; type $ to see the names. Results written where a dataset is mounted stay."
        ),
        source=f"{BOTH}: start command",
    ),
    Field(
        "libraries",
        "/requirements/packages",
        Kind.LONG,
        _("Third-party libraries"),
        Lines(),
        help=_("Python packages that are installed before the command, one a line."),
        source=f"{SEED_ZH}: third-party libraries, list",
        placeholder="transformers==4.44.0",
    ),
    Field(
        "libraries-folder",
        "/requirements/directory",
        Kind.TEXT,
        _("Folder of requirements.txt"),
        help=_("Instead of a list: the folder inside the job where a requirements.txt is."),
        source=f"{SEED_ZH}: third-party libraries, directory",
        placeholder="/root/code",
    ),
    Field(
        "modules",
        "/software/modules",
        Kind.LONG,
        _("Environment modules"),
        Lines(),
        help=_("Loaded with module load before the command, one a line, where the cluster has them."),
        source="JobSpec",
        placeholder="cuda/12.4",
    ),
    Field(
        "conda",
        "/software/conda",
        Kind.TEXT,
        _("conda environment"),
        help=_("The environment's folder where the job runs. A job has this or a venv."),
        source="JobSpec",
        placeholder="/opt/conda/envs/train",
    ),
    Field(
        "venv",
        "/software/venv",
        Kind.TEXT,
        _("Python venv"),
        help=_("The venv's folder where the job runs."),
        source="JobSpec",
        placeholder="/home/me/venv",
    ),
    Field(
        "code-id",
        "/code/id",
        Kind.TEXT,
        _("Registered code"),
        help=_("The id of a code source that the workspace keeps."),
        source=f"{SEED_ZH}: code, online",
    ),
    Field(
        "code-uri",
        "/code/uri",
        Kind.TEXT,
        _("Repository"),
        help=_("The address of a git repository that you may read. It is fetched before the command."),
        source=f"{SEED_ZH}: code, online",
        placeholder="https://git.example.com/team/code.git",
    ),
    Field(
        "code-branch",
        "/code/branch",
        Kind.TEXT,
        _("Branch"),
        help=_("Empty: the repository's own."),
        source=f"{SEED_ZH}: code, online",
    ),
    Field(
        "code-commit",
        "/code/commit",
        Kind.TEXT,
        _("Commit"),
        help=_("Empty: the newest of the branch."),
        source=f"{SEED_ZH}: code, online",
    ),
    Field(
        "code-path",
        "/code/path",
        Kind.TEXT,
        _("Where the code appears"),
        help=_("The folder inside the job. Empty: /root/code."),
        source=f"{SEED_ZH}: code, mount path",
        placeholder="/root/code",
    ),
)

ENV: Final = Rows(
    "env",
    "/env",
    _("Environment variables"),
    (
        cell("name", Kind.TEXT, _("Name")),
        cell("value", Kind.TEXT, _("Value"), Text(strip=False)),
        cell("secret", Kind.CHOICE, _("or one of my secrets")),
    ),
    help=_("Settings for the command, as names and values. PAI-DLC takes up to 20."),
    source=f"{SEED_ZH}: environment variables",
)
