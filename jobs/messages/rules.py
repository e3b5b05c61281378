"""Sentences about the rules of PAI-DLC's pages, and their sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from jobs.language import gettext
from jobs.messages.amounts import money
from jobs.messages.sentences import mark as _
from jobs.messages.sentences import say

Params = Mapping[str, object]

NOTES: Final[Mapping[str, tuple[str, ...]]] = {
    # environment
    "image_reachable": (
        _(
            "PAI-DLC can pull a custom image only from a public repository, from ACR, or with the "
            "registry's user name and password."
        ),
    ),
    "login_with_image": (_("A registry login is used only with an image."),),
    "rdma_by_hand": (
        _(
            "On Lingjun machines, install RDMA in your custom image; otherwise the high-speed "
            "network is not used."
        ),
    ),
    "public_data_read_only": (_("Public datasets can only be mounted read-only."),),
    "storage_grant": (_("PAI needs permission to use your OSS or NAS; otherwise reads and writes fail."),),
    "cpfs_needs_vpc": (
        _(
            "CPFS file system %(place)s requires its VPC; otherwise PAI-DLC may keep preparing the "
            "environment for a long time."
        ),
        _(
            "A CPFS file system requires its VPC; otherwise PAI-DLC may keep preparing the "
            "environment for a long time."
        ),
    ),
    "cpfs_other_vpc": (
        _("%(place)s is in VPC %(its)s, but the job is in %(vpc)s. Select the file system's VPC."),
        _("The job must be in the VPC of its CPFS file system."),
    ),
    "bmcpfs_on_lingjun": (_("BMCPFS is available only for Lingjun resources."),),
    "oss_by_ossfs": (
        _("To mount OSS with ossfs, enter %(example)s in the advanced settings of the mount."),
        _("OSS can be mounted with ossfs in the advanced settings of the mount."),
    ),
    "nconnect_positive": (
        _(
            "nconnect in the advanced settings makes NAS and CPFS faster; it must be a whole "
            "number, 1 or greater."
        ),
    ),
    "results_in_data": (_("Files that the command writes to a mount are kept after the job."),),
    "variables_injected": (
        _("The command can use predefined variables as $NAME: %(names)s and others."),
        _("The command can use predefined variables as $NAME."),
    ),
    "variables_most": (
        _("The job sets %(count)s environment variables; the PAI-DLC page accepts at most %(limit)s."),
        _("The PAI-DLC page accepts a limited number of environment variables."),
    ),
    "code_access": (
        _("The job's owner needs access to the repository: the code is fetched before the job starts."),
    ),
    # resources
    "kind_where_both": (_("This workspace has resources of one type only; nothing to select."),),
    "lingjun_regions": (
        _("PAI-DLC has no Lingjun resources in region %(region)s."),
        _("PAI-DLC has Lingjun resources only in some regions."),
    ),
    "public_ceiling": (
        _("%(key)s: %(count)s requested; public resources allow %(limit)s per user."),
        _("Public resources are limited per user."),
    ),
    "public_waits": (
        _(
            "Public resources are shared and suit a few jobs that are not urgent. Ask an admin to "
            "raise the limit."
        ),
    ),
    "billed_by_use": (_("Billed by the hour."),),
    "billed_ahead": (_("Prepaid by subscription, whether used or not."),),
    "quota_for_quota": (
        _("The file sets quota %(quota)s, which applies only when the source is a resource quota."),
        _("A quota can be selected only when the source is a resource quota."),
    ),
    "spot_on_lingjun": (_("PAI-DLC has preemptible resources only of the Lingjun type."),),
    "spot_region": (
        _("PAI-DLC has preemptible resources in %(where)s, not in %(region)s."),
        _("PAI-DLC has preemptible resources only in one region."),
    ),
    "spot_allowed": (_("PAI-DLC offers preemptible resources only to users on its allowlist, by request."),),
    "spot_may_go": (
        _(
            "Preemptible resources are cheaper but not guaranteed: they may be unavailable at "
            "first, and can be reclaimed."
        ),
    ),
    "spot_needs_vpc": (
        _("A job on preemptible Lingjun resources needs a VPC, a vSwitch and a security group."),
    ),
    "priority_for_quota": (_("Priorities apply only among the jobs of a resource quota."),),
    "priority_range": (_("From 1 to 9; 1 is the lowest."),),
    "frameworks": (
        _("%(framework)s is not available on the PAI-DLC page."),
        _("Frameworks available on the PAI-DLC page."),
    ),
    "lingjun_frameworks": (
        _("PAI-DLC does not run %(framework)s on Lingjun resources."),
        _("PAI-DLC does not run every framework on Lingjun resources."),
    ),
    "slurm_older_page": (_("Slurm appears only in the older PAI-DLC documentation."),),
    "roles_of_framework": (
        _("%(job_type)s does not have these roles: %(names)s."),
        _("Roles of %(job_type)s."),
        _("Each framework has its own roles."),
    ),
    "ray_roles": (_("Ray supports custom roles, Worker-NAME, for machines of different sizes."),),
    "size_by_spec": (
        _("On PAI-DLC, a spec is selected here from a price list instead of entering amounts."),
    ),
    "amounts_on_quota": (
        _("With a resource quota, PAI-DLC uses CPU, GPUs and memory instead of a spec from its list."),
    ),
    "bid_for_spot": (_("Bids apply only to preemptible resources."),),
    "bid_discount": (_("A discount bid must be 10 to 90 percent of the market price, in steps of 10."),),
    "bid_price": (
        _("A price bid can't exceed the market price, %(price)s per hour for one replica."),
        _("A price bid can't exceed the market price."),
    ),
    "bid_reaches": (
        _("The bid is %(bid)s and the current price %(price)s: the job waits until the price drops."),
        _("The bid is below the current price: the job waits until the price drops."),
    ),
    "nodes_for_quota": (_("Nodes can be selected only with a resource quota."),),
    "idle_for_quota": (
        _("Idle resources of other quotas are available only to jobs with a resource quota."),
    ),
    "idle_goes_back": (_("A job on idle resources of other quotas is stopped when those quotas need them."),),
    "affinity_for_quota": (_("CPU affinity is available only with a resource quota."),),
    "running_time": (
        _("Without a time limit, the job runs to completion here; PAI-DLC stops it after %(hours)s hours."),
        _("Without a time limit, the job runs to completion here."),
    ),
    "retention_holds": (
        _(
            "On PAI-DLC, a retained job keeps holding all its resources, and they are billed; here they are "
            "released when it ends."
        ),
    ),
    "retention_deletes": (
        _("When its retention is over, the job is deleted with its logs and files; this can't be undone."),
    ),
    "vpc_on_public": (
        _("The older PAI-DLC documentation offers a VPC only with public resources, the newer one always."),
    ),
    "slow_without_vpc": (
        _("Without a VPC, the job uses a public gateway with limited bandwidth and may run slowly or fail."),
    ),
    "same_region": (
        _(
            "The resources and the datasets' OSS must be in the VPC's region, and the repository "
            "must be reachable."
        ),
    ),
    "parts_of_vpc": (_("Part of a VPC: select the VPC first."),),
    "public_gateway": (
        _("The public gateway's bandwidth is shared: large files and many concurrent jobs slow it down."),
    ),
    "private_gateway": (
        _(
            "A dedicated gateway needs a public NAT gateway in the VPC, with an elastic IP address and "
            "SNAT entries."
        ),
    ),
    # advanced settings
    "option_of_framework": (
        _("%(key)s applies only to %(needs)s."),
        _("Applies only to another framework."),
    ),
    "option_values": (_("%(key)s must be one of: %(values)s."), _("Only certain values are allowed.")),
    "option_numbers": (
        _("%(key)s must be a whole number, 1 or greater."),
        _("Must be a whole number, 1 or greater."),
    ),
    "ports_one_way": (
        _("%(key)s and %(other)s are mutually exclusive. Set only one of them."),
        _("Specify ports as a list or as a number, not both."),
    ),
    "ports_listed": (_("Separate ports and ranges with semicolons, e.g. 10000;10001-10010."),),
    "ports_not_masters": (
        _("Remove port %(port)s: it is used by the master."),
        _("Remove the master's port."),
    ),
    "ports_number": (
        _("A whole number up to %(limit)s. CUSTOM_PORTS contains the ports."),
        _("A whole number. CUSTOM_PORTS contains the ports."),
    ),
    "no_ports_number_on_lingjun": (
        _("Lingjun resources do not support a number of ports. List the ports instead."),
    ),
    "workers_reach_each_other": (
        _(
            "When on, each worker can be reached by a name that begins with $JOB_NAME; otherwise "
            "only the master can."
        ),
    ),
    "ray_env_goes_before": (
        _("RayRuntimeEnv takes precedence over the job's environment variables and third-party libraries."),
    ),
    # fault tolerance, roles
    "aimaster_costs": (
        _(
            "On PAI-DLC, an AIMaster runs alongside the job and uses 1 CPU core and 1 GiB of "
            "memory of the quota."
        ),
    ),
    "aimaster_costs_public": (
        _("On PAI-DLC, an AIMaster runs alongside the job on its own machine (%(size)s)."),
        _("On PAI-DLC, an AIMaster runs alongside the job on its own machine."),
    ),
    "aimaster_not_here": (
        _(
            "The console itself looks for faults and restarts the job: no AIMaster runs, and no "
            "resources are reserved for one."
        ),
    ),
    "aimaster_frameworks": (
        _("Automatic fault tolerance is available for these frameworks: %(names)s."),
        _("Automatic fault tolerance is available only for some frameworks."),
    ),
    "sanity_check_where": (
        _(
            "PAI-DLC has the sanity check only for PyTorch jobs with GPUs on a Lingjun resource quota. This "
            "console checks every job."
        ),
    ),
    "role_default": (
        _(
            "The workspace's default role. On PAI-DLC that is %(role)s: it can access MaxCompute with the "
            "permissions of the job's owner, and the workspace's default OSS bucket; nothing else."
        ),
        _("The workspace's default role."),
    ),
    "role_custom": (
        _(
            "The job has the permissions of this role: acs:ram::ACCOUNT:role/NAME or "
            "arn:aws:iam::ACCOUNT:role/NAME."
        ),
    ),
    "role_none": (_("No role (default)."),),
}

_SECTIONS: Final = {
    "basic": _("Basic information"),
    "environment": _("Environment"),
    "resources": _("Resources"),
    "faults": _("Fault tolerance and diagnosis"),
    "roles": _("Roles and permissions"),
    "appendix": _("Advanced parameters"),
}
_PAGES: Final = {
    ("zh", "ja"): _("PAI-DLC documentation, %(section)s"),
    ("zh",): _("PAI-DLC documentation (Chinese), %(section)s"),
    ("ja",): _("PAI-DLC documentation (Japanese), %(section)s"),
    (): _("Job Console"),
}

_MONEY: Final = {"micro": "price", "bid": "bid"}


def rule_message(code: str, params: Params) -> str:
    """Return the sentence of a rule."""
    return say(NOTES[code], {**params, **_money(params)})


def _money(params: Params) -> dict[str, str]:
    """Return prices, which are in millionths, as people write them."""
    found = {}
    for name, shown in _MONEY.items():
        value = params.get(name)
        if isinstance(value, int):
            found[shown] = money(value)
    return found


def origin_label(pages: Sequence[str], section: str) -> str:
    """Return the source of a rule in words."""
    return gettext(_PAGES[tuple(pages)]) % {"section": gettext(_SECTIONS[section])}
