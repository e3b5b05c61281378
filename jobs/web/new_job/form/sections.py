"""The sections of the form, and the contexts of their templates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from jobs.assets import instance_roles
from jobs.form import acceleration, subfields
from jobs.form.fields import MOST_ROLES, Words
from jobs.form.file_form import ENV_PASTE
from jobs.form.roles import roles_of
from jobs.form.rules.advanced import SETTINGS
from jobs.form.rules.faults import DEFAULT_ROLE
from jobs.models import Job
from jobs.spec import Framework
from jobs.web.new_job.copies import free_name
from jobs.web.new_job.form.choices import (
    list_code_sources,
    list_datasets,
    list_images,
    list_networks,
    list_nodes,
    list_specs,
    list_targets,
    offer_values,
)
from jobs.web.new_job.form.fields import FieldGroup, FormBuilder, FormField, Options, RoleBlock, merge_support
from quotas.models import User


def _basic(user: User, builder: FormBuilder) -> dict[str, Any]:
    """Return the context of the section's template."""
    name = builder.values.get("name", "")
    taken = bool(name) and Job.objects.filter(owner=user, name=name).exists()
    free = free_name(user, name) if taken else ""
    hint = (
        _("You already have a job with this name; %(free)s is available.") % {"free": free} if taken else ""
    )
    about = builder.get_fields("description", "visibility", "workspace")
    return {
        "fields": (builder.get_field("name", hint=hint, offered=free),),
        "groups": (
            FieldGroup("about", _("Tags, description, visibility"), about, (builder.get_rows("tags"),)),
        ),
    }


REGISTRY = ("registry-username", "registry-secret", "registry-password", "registry-registry", "registry-file")
CONTAINERS = ("roles-*-init-containers", "roles-*-sidecars")
LIBRARIES = ("libraries", "libraries-folder")
SOFTWARE = ("modules", "conda", "venv")
CODE = ("code-uri", "code-branch", "code-commit", "code-path", "code-submodules")


def _environment(user: User, builder: FormBuilder) -> dict[str, Any]:
    """Return the context of the section's template."""
    images = list_images(user, builder)
    datasets = offer_values(builder.get_rows("datasets"), "id", list_datasets(user, builder))
    mounted = (datasets, builder.get_rows("mounts"))
    variables = (builder.get_rows("env"),)
    pasted, problem = builder.rejected.get(ENV_PASTE, ""), builder.problem(ENV_PASTE)
    code = (
        builder.get_field("code-id", suggested=list_code_sources(user, builder)),
        *builder.get_fields(*CODE),
    )
    return {
        "blocks": tuple(
            _environment_block(builder, role, name, images) for role, name in enumerate(builder.roles)
        ),
        "groups": (
            FieldGroup(
                "env",
                _("Environment variables"),
                rows=variables,
                template="jobs/new/env.html",
                pasted=pasted,
                problem=problem,
            ),
            FieldGroup("data", _("Datasets and mounts"), rows=mounted),
            FieldGroup("libraries", _("Third-party libraries"), builder.get_fields(*LIBRARIES)),
            FieldGroup("software", _("Modules & environments"), builder.get_fields(*SOFTWARE)),
            FieldGroup("code", _("Code"), code, template="jobs/new/upload.html"),
            FieldGroup("registry", _("Private image registry"), builder.get_fields(*REGISTRY)),
        ),
    }


def _environment_block(builder: FormBuilder, role: int, name: str, images: Options) -> RoleBlock:
    title = name if len(builder.roles) > 1 else ""
    containers = FieldGroup(
        f"containers-{role}",
        _("Init containers and sidecars"),
        builder.get_fields("roles-*-shared-paths", role=role),
        tuple(builder.get_rows(key, role) for key in CONTAINERS),
    )
    return RoleBlock(
        role,
        title,
        (*_image(builder, role, images), builder.get_field("roles-*-command", role)),
        groups=(containers,),
    )


def _image(builder: FormBuilder, role: int, images: Options) -> tuple[FormField, ...]:
    """The image; whether it is the accelerated edition is asked only where there may be one."""
    image = builder.get_field("roles-*-image", role, suggested=images)
    if not acceleration.can_accelerate(image.value):
        return (image,)
    return (image, builder.get_field("roles-*-accelerated", role))


SHORT = ("roles-*-replicas", "roles-*-gpus", "roles-*-gpu-type", "roles-*-cpu", "roles-*-memory")
MORE = ("roles-*-shm", "roles-*-disk", "roles-*-rdma")
BID = ("roles-*-bid-discount", "roles-*-bid-price")
SCHEDULING = ("quota", "priority", "idle", "cpu-affinity")
OPTIONS: Final = tuple(f"option-{setting.key}" for setting in SETTINGS)
TIME = ("time-limit", "end-signal", "end-signal-before", "grace", "hold", "not-before", "retries")
AFTER = ("keep-for", "keep-when", "keep-failed")
NETWORK = ("vpc", "switch", "security-group", "cidrs", "gateway")
END = (
    "roles-*-min-failed",
    "roles-*-min-succeeded",
    "roles-*-restart-condition",
    "roles-*-restart-limit",
)


def _resources(user: User, builder: FormBuilder) -> dict[str, Any]:
    """Return the context of the section's template."""
    offered = _Offered(builder)
    several = len(builder.roles) > 1
    framework = builder.get_fields("framework")
    return {
        "places": list_targets(user, builder.target_state),
        "fields": framework,
        "blocks": tuple(
            _block(builder, offered, role, name, several) for role, name in enumerate(builder.roles)
        ),
        "add_role": len(builder.roles) < MOST_ROLES,
        "groups": _drop_empty(
            FieldGroup(
                "scheduling", _("Quota, priority and idle resources"), builder.get_fields(*SCHEDULING)
            ),
            FieldGroup(
                "framework", _("Advanced framework settings"), builder.get_fields(*OPTIONS, "options")
            ),
            FieldGroup("time", _("Start and end"), builder.get_fields(*TIME), (builder.get_rows("after"),)),
            FieldGroup("after", _("After the job ends"), builder.get_fields(*AFTER)),
            FieldGroup("network", _("VPC"), _network(user, builder)),
        ),
    }


def _network(user: User, builder: FormBuilder) -> tuple[FormField, ...]:
    """Return the VPC field, and those of the chosen VPC."""
    offered = list_networks(user, builder, builder.get_field("vpc").value)
    return tuple(builder.get_field(key, suggested=offered.get(key, ())) for key in NETWORK)


class _Offered:
    """The values to choose from at the job's target."""

    def __init__(self, builder: FormBuilder) -> None:
        quota = builder.target_state.quota
        available = list_nodes(quota)
        self.specs: Options = list_specs(quota)
        self.types: Options = [
            (kind, "") for kind in sorted({kind for node in available for kind in node.gpus})
        ]
        self.nodes = ", ".join(node.name for node in available)
        text = builder.values.get("framework", "")
        framework = Framework(text) if text in set(Framework) else None
        self.roles: Options = [(name, "") for name in roles_of(framework)]


def _block(builder: FormBuilder, offered: _Offered, role: int, title: str, several: bool) -> RoleBlock:
    def make_group(name: str, label: str, fields: tuple[FormField, ...]) -> FieldGroup:
        return FieldGroup(f"{name}-{role}", label, fields)

    short = tuple(
        builder.get_field(key, role, suggested=offered.types if key.endswith("gpu-type") else ())
        for key in SHORT
    )
    more = (
        builder.get_field("roles-*-name", role, suggested=offered.roles),
        builder.get_field("roles-*-spec", role, suggested=offered.specs, hint=_price(builder, offered, role)),
        *builder.get_fields(*MORE, role=role),
    )
    return RoleBlock(
        role,
        title if several else "",
        short,
        (builder.get_rows("roles-*-ports", role),),
        _drop_empty(
            make_group("more", _("Role, specification, shared memory and disk"), more),
            make_group("nodes", _("Node-specific scheduling"), _nodes(builder, offered, role)),
            make_group("bid", _("Bid for preemptible resources"), builder.get_fields(*BID, role=role)),
            make_group("end", _("Completion policy"), builder.get_fields(*END, role=role)),
        ),
        removable=several,
    )


def _nodes(builder: FormBuilder, offered: _Offered, role: int) -> tuple[FormField, ...]:
    available = _("Available nodes: %(nodes)s.") % {"nodes": offered.nodes} if offered.nodes else ""
    only = builder.get_field("roles-*-nodes-only", role, hint=available)
    return (only, *builder.get_fields("roles-*-nodes-never", "roles-*-nodes-labels", role=role))


def _price(builder: FormBuilder, offered: _Offered, role: int) -> str:
    """Return the amounts and the price of the chosen size."""
    chosen = builder.values.get(f"roles-{role}-spec", "")
    return str(dict(offered.specs).get(chosen, ""))


def _drop_empty(*groups: FieldGroup) -> tuple[FieldGroup, ...]:
    """Return the groups that have something at the job's target."""
    return tuple(group for group in groups if group.fields or group.rows or group.template)


FAULTS: Final = (
    *(f"fault-{each.name}" for each in subfields.FAULT_TOLERANCE),
    "fault-scope",
    "fault-patterns",
    "fault-arguments",
)
SANITY: Final = (*(f"sanity-{each.name}" for each in subfields.SANITY_CHECK), "sanity-arguments")
ALERT = ("alert", "alert-comparison", "alert-value", "alert-minutes")
BESIDE = ("tensorboard", "tensorboard-path")


def _faults(_user: User, builder: FormBuilder) -> dict[str, Any]:
    """Return the context of the section's template."""
    return {
        "fields": builder.get_fields("fault-tolerance", "sanity-check"),
        "groups": (
            merge_support(
                FieldGroup("faults", _("Automatic fault tolerance arguments"), builder.get_fields(*FAULTS))
            ),
            merge_support(FieldGroup("sanity", _("Sanity check arguments"), builder.get_fields(*SANITY))),
            merge_support(FieldGroup("alert", _("Alert"), builder.get_fields(*ALERT))),
            merge_support(FieldGroup("tensorboard", "TensorBoard", builder.get_fields(*BESIDE))),
        ),
    }


MOST: Final = 50


def _roles(_user: User, builder: FormBuilder) -> dict[str, Any]:
    """Return the context of the section's template."""
    field = builder.get_field("instance-role")
    offered = _role_choices(builder)
    if not offered:
        suggested = [(DEFAULT_ROLE, _("PAI default role"))]
        return {"fields": (replace(field, suggested=suggested),)}
    if field.value and field.value not in dict(offered):
        offered.append((field.value, _("%(name)s (from the file)") % {"name": field.value}))
    return {"fields": (replace(field, options=offered),)}


def _role_choices(builder: FormBuilder) -> list[tuple[str, Words]]:
    """No role, the workspace's default one and its others; nothing where it has none."""
    quota = builder.target_state.quota
    if quota is None:
        return []
    roles = instance_roles.list_roles(quota.workspace)[:MOST]
    default = [
        (DEFAULT_ROLE, _("Default role (%(name)s)") % {"name": row.name}) for row in roles if row.is_default
    ]
    found = [*default, *((row.arn, row.name) for row in roles)]
    return [("", _("No role")), *found] if found else []


VARIABLES: Final[tuple[tuple[str, Words], ...]] = (
    ("MASTER_ADDR", gettext_lazy("address of the first node")),
    ("MASTER_PORT", gettext_lazy("rendezvous port on the first node")),
    ("WORLD_SIZE", gettext_lazy("number of nodes")),
    ("RANK", gettext_lazy("index of this node, from 0")),
    ("NPROC_PER_NODE", gettext_lazy("GPUs per node; 1 if none")),
    ("TF_CONFIG", gettext_lazy("TensorFlow cluster specification (TensorFlow jobs only)")),
    ("JOB_NAME", gettext_lazy("job ID")),
    ("CUSTOM_PORTS", gettext_lazy("requested ports, separated by “;”")),
    ("PAI_JOB_NAME", gettext_lazy("job name")),
    ("PAI_USER_NAME", gettext_lazy("job owner")),
    ("PAI_CURRENT_TASK_ROLE_NAME", gettext_lazy("role of this replica")),
    ("PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX", gettext_lazy("index of this replica in its role, from 0")),
    ("PAI_CURRENT_TASK_ROLE_TASK_COUNT", gettext_lazy("number of replicas of this role")),
    ("PAI_CURRENT_TASK_ROLE_GPU_COUNT", gettext_lazy("GPUs of this replica")),
    ("PAI_CURRENT_TASK_ROLE_CPU_COUNT", gettext_lazy("CPU cores of this replica")),
    ("PAI_CURRENT_TASK_ROLE_MEM_MB", gettext_lazy("memory of this replica, in MiB")),
    ("PAI_TASK_ROLE_LIST", gettext_lazy("names of all roles, comma-separated")),
    ("PAI_CONTAINER_HOST_IP", gettext_lazy("address of this replica's node")),
    ("JOB_CONSOLE_ENDPOINT_IP", gettext_lazy("address at which endpoints listen")),
    ("PAI_CONTAINER_SSH_PORT", gettext_lazy("SSH port")),
    ("PAI_WORK_DIR", gettext_lazy("working folder of this replica")),
    ("CHECKPOINT_DIR", gettext_lazy("folder that outlives the job's attempts")),
    ("RESUME_FROM", gettext_lazy("newest complete checkpoint, after a restart")),
    ("PAI_DATA_DIR", gettext_lazy("data location, if set in the file")),
    ("PAI_OUTPUT_DIR", gettext_lazy("output location, if set in the file")),
    ("PAI_CODE_DIR", gettext_lazy("code location, if set in the file")),
    ("CUDA_VISIBLE_DEVICES", gettext_lazy("indices of this replica's GPUs")),
    ("HOME", gettext_lazy("working folder of this replica")),
)
"""The variables, each with its meaning."""


@dataclass(frozen=True, slots=True)
class SectionOfPage:
    """`model` returns the context `section.model` of `templates/jobs/new/sections/<id>.html`."""

    id: str
    label: Words
    model: Callable[[User, FormBuilder], Mapping[str, Any]]

    @property
    def template(self) -> str:
        """The template of the section."""
        return f"jobs/new/sections/{self.id}.html"


SECTIONS: Final = (
    SectionOfPage("basic", gettext_lazy("Basic information"), _basic),
    SectionOfPage("environment", gettext_lazy("Environment"), _environment),
    SectionOfPage("resources", gettext_lazy("Resources"), _resources),
    SectionOfPage("faults", gettext_lazy("Fault tolerance and diagnosis"), _faults),
    SectionOfPage("roles", gettext_lazy("Roles and permissions"), _roles),
)
