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
            "PAI-DLC pulls an image of one's own only where its repository is public, where it lies in "
            "ACR, or with the registry's user name and password."
        ),
    ),
    "login_with_image": (_("A registry's login is of use only with an image."),),
    "rdma_by_hand": (
        _(
            "On Lingjun machines, install RDMA in an image of your own: otherwise their fast network "
            "lies idle."
        ),
    ),
    "public_data_read_only": (_("A public dataset can be mounted read-only, and not otherwise."),),
    "storage_grant": (
        _("PAI has to be allowed to use your OSS or NAS: otherwise reading and writing there fails."),
    ),
    "cpfs_needs_vpc": (
        _(
            "A CPFS file system (%(place)s) needs the VPC that it lies in: otherwise PAI-DLC may go on "
            "preparing the environment for long."
        ),
        _(
            "A CPFS file system needs the VPC that it lies in: otherwise PAI-DLC may go on preparing the "
            "environment for long."
        ),
    ),
    "cpfs_other_vpc": (
        _("%(place)s lies in the VPC %(its)s, and the job is in %(vpc)s: choose the file system's."),
        _("The job has to be in the VPC of its CPFS file system."),
    ),
    "bmcpfs_on_lingjun": (_("BMCPFS is there for Lingjun resources only."),),
    "oss_by_ossfs": (
        _("To mount OSS by ossfs, write %(example)s into the advanced settings of the mount."),
        _("OSS can be mounted by ossfs, in the advanced settings of the mount."),
    ),
    "nconnect_positive": (
        _("NAS and CPFS get faster with nconnect in the advanced settings; it is a whole number from 1 on."),
    ),
    "results_in_data": (_("What the command writes below a mount stays there after the job."),),
    "variables_injected": (
        _("The command finds variables that are set for it, as in $NAME: %(names)s and others."),
        _("The command finds variables that are set for it, as in $NAME."),
    ),
    "variables_most": (
        _("The job sets %(count)s environment variables; PAI-DLC's page takes at most %(limit)s."),
        _("PAI-DLC's page takes a limited number of environment variables."),
    ),
    "code_access": (_("Whoever runs the job needs access to the repository: its code is fetched first."),),
    # resources
    "kind_where_both": (_("This workspace has resources of one type, so that there is nothing to choose."),),
    "lingjun_regions": (
        _("PAI-DLC has no Lingjun resources in the region %(region)s."),
        _("PAI-DLC has Lingjun resources in some regions only."),
    ),
    "public_ceiling": (
        _("%(key)s: the job asks for %(count)s; of public resources one person may hold %(limit)s."),
        _("What one person may hold of public resources is limited."),
    ),
    "public_waits": (
        _(
            "Public resources are for few jobs that are in no hurry: others wait for them too. A higher "
            "ceiling is an admin's to give."
        ),
    ),
    "billed_by_use": (_("What is used is paid for by the hour."),),
    "billed_ahead": (_("The quota is paid for already, whether it is used or not: a subscription."),),
    "quota_for_quota": (
        _("The file names the quota %(quota)s, which counts only where the source is a resource quota."),
        _("A quota is chosen only where the source is a resource quota."),
    ),
    "spot_on_lingjun": (_("PAI-DLC has preemptible resources of the Lingjun type only."),),
    "spot_region": (
        _("PAI-DLC has preemptible resources in %(where)s, and not in %(region)s."),
        _("PAI-DLC has preemptible resources in one region only."),
    ),
    "spot_allowed": (
        _("PAI-DLC gives preemptible resources only to those whom it was asked to put on a list."),
    ),
    "spot_may_go": (
        _(
            "Preemptible resources are cheaper and not certain: they may not be there at once, and may "
            "be taken back."
        ),
    ),
    "spot_needs_vpc": (
        _("A job on preemptible Lingjun resources needs a VPC, a vSwitch and a security group."),
    ),
    "priority_for_quota": (_("Priorities count among the jobs of a resource quota only."),),
    "priority_range": (_("From 1 to 9; 1 is the lowest."),),
    "frameworks": (
        _("%(framework)s is no framework of PAI-DLC's page."),
        _("These are the frameworks of PAI-DLC's page."),
    ),
    "lingjun_frameworks": (
        _("%(framework)s does not run on Lingjun resources."),
        _("Not every framework runs on Lingjun resources."),
    ),
    "slurm_older_page": (
        _("Slurm stands on the older of PAI-DLC's pages only; the newer one has left it out."),
    ),
    "roles_of_framework": (
        _("%(job_type)s has no such role: %(names)s."),
        _("These are the roles of %(job_type)s."),
        _("Each framework has roles of its own."),
    ),
    "ray_roles": (_("Ray takes roles of your own, Worker-NAME, for machines of different sizes."),),
    "size_by_spec": (_("PAI-DLC takes a spec from its list here, with its price, and no amounts."),),
    "amounts_on_quota": (
        _("On a resource quota PAI-DLC takes CPU, GPUs and memory, and no spec from its list."),
    ),
    "bid_for_spot": (_("A bid is for preemptible resources only."),),
    "bid_discount": (_("A bid by discount is from 10 to 90 percent of the market price, in steps of 10."),),
    "bid_price": (
        _("A bid by price is at most the market price, %(price)s an hour for one replica."),
        _("A bid by price is at most the market price."),
    ),
    "bid_reaches": (
        _("The bid is %(bid)s and the price now %(price)s: the job waits until the price has come down."),
        _("The bid is below the price now: the job waits until the price has come down."),
    ),
    "nodes_for_quota": (_("Nodes are chosen within a resource quota only."),),
    "idle_for_quota": (_("Idle resources of other quotas are for jobs of a resource quota only."),),
    "idle_goes_back": (
        _("A job on idle resources of other quotas is stopped when the quota they belong to needs them."),
    ),
    "affinity_for_quota": (_("CPU affinity is for jobs of a resource quota only."),),
    "running_time": (
        _("Without a time limit the job runs to its end here; PAI-DLC stops it after %(hours)s hours."),
        _("Without a time limit the job runs to its end here."),
    ),
    "retention_holds": (_("A kept job goes on holding, and paying for, all its resources after its end."),),
    "retention_deletes": (_("PAI-DLC deletes a kept job when its time is over; it can't be brought back."),),
    "vpc_on_public": (
        _("The older of PAI-DLC's pages offers a VPC with public resources only; the newer one always."),
    ),
    "slow_without_vpc": (
        _(
            "Without a VPC the job uses a public gateway, whose bandwidth is small: it may run slowly or "
            "fail."
        ),
    ),
    "same_region": (
        _(
            "The resources and the OSS of the datasets have to be in the VPC's region, and the "
            "repository within reach."
        ),
    ),
    "parts_of_vpc": (_("This belongs to a VPC: choose that first."),),
    "public_gateway": (
        _("The public gateway's bandwidth is shared: large files and many jobs at once make it slow."),
    ),
    "private_gateway": (
        _(
            "A dedicated gateway needs a public NAT gateway in the VPC, with an elastic IP address and "
            "SNAT entries."
        ),
    ),
    # advanced settings
    "option_of_framework": (
        _("%(key)s means something for a %(needs)s only."),
        _("This means something for another framework only."),
    ),
    "option_values": (_("%(key)s takes one of these: %(values)s."), _("This takes one of a few values.")),
    "option_numbers": (_("%(key)s is a whole number from 1 on."), _("This is a whole number from 1 on.")),
    "ports_one_way": (
        _("%(key)s and %(other)s exclude each other: set one of them."),
        _("Ports are given by list or by number, not both."),
    ),
    "ports_listed": (_("Write ports and ranges with semicolons between, as in 10000;10001-10010."),),
    "ports_not_masters": (
        _("Leave out port %(port)s: it is the master's."),
        _("Leave out the master's port."),
    ),
    "ports_number": (
        _("A whole number up to %(limit)s; the ports are then in CUSTOM_PORTS."),
        _("A whole number; the ports are then in CUSTOM_PORTS."),
    ),
    "no_ports_number_on_lingjun": (_("Lingjun resources have no ports by number: list them instead."),),
    "workers_reach_each_other": (
        _(
            "With it each worker is reached by its name, which $JOB_NAME begins; otherwise only the "
            "master is."
        ),
    ),
    "ray_env_goes_before": (
        _("RayRuntimeEnv goes before the environment variables and third-party libraries of the job."),
    ),
    # fault tolerance, roles
    "aimaster_costs": (
        _(
            "On PAI-DLC an AIMaster runs beside the job and takes 1 CPU core and 1 GiB of memory of the "
            "quota."
        ),
    ),
    "aimaster_costs_public": (
        _("On PAI-DLC an AIMaster runs beside the job, on a machine of its own (%(size)s)."),
        _("On PAI-DLC an AIMaster runs beside the job, on a machine of its own."),
    ),
    "aimaster_not_here": (
        _(
            "Nothing watches over the job on this cluster: automatic fault tolerance is kept for export, "
            "and no resources are held for it."
        ),
    ),
    "aimaster_frameworks": (
        _("Automatic fault tolerance is there for these frameworks: %(names)s."),
        _("Automatic fault tolerance is there for some frameworks only."),
    ),
    "sanity_check_where": (
        _("The sanity check is for PyTorch jobs with GPUs on a Lingjun resource quota only."),
    ),
    "role_default": (
        _(
            "%(role)s may use MaxCompute, with the rights of the job's owner, and the default OSS bucket "
            "of the workspace; nothing else."
        ),
        _("PAI's default role may use MaxCompute and the workspace's default OSS bucket; nothing else."),
    ),
    "role_custom": (_("The job has the rights of this role: acs:ram::ACCOUNT:role/NAME."),),
    "role_none": (_("The job has no RAM role. That is the usual choice."),),
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
    ("zh", "ja"): _("PAI-DLC's pages, %(section)s"),
    ("zh",): _("PAI-DLC's page (Chinese), %(section)s"),
    ("ja",): _("PAI-DLC's page (Japanese), %(section)s"),
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
