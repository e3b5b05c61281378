"""The rules of PAI-DLC's two pages, one by one: where each stands, when it speaks, when it is silent."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.forming import rules
from jobs.forming.ground import Ground
from jobs.forming.rules import BY_CODE, RULES, Effect, Page, Section
from jobs.forming.rules.advanced import SETTINGS
from jobs.messages.rules import NOTES, origin_label, rule_message
from jobs.spec import (
    Bid,
    Check,
    CodeSource,
    Framework,
    Idle,
    JobSpec,
    Mount,
    Network,
    NodeChoice,
    RegistryAuth,
    Requirements,
    Reservation,
    Resources,
    TaskRole,
)
from quotas.admission import Price
from quotas.models import Kind, Source
from tests.jobs.dialects.dlc_strategies import dlc_specs

ZH, JA = (Page.CHINESE,), (Page.JAPANESE,)
BOTH = (Page.CHINESE, Page.JAPANESE)
ENV, RES, FAULTS, ROLES, MORE = (
    Section.ENVIRONMENT,
    Section.RESOURCES,
    Section.FAULTS,
    Section.ROLES,
    Section.APPENDIX,
)

QUOTA = Ground(most_gpus=None)
PUBLIC = Ground(source=Source.PUBLIC, most_gpus=2, most_cpu_milli=8000)
SPOT = Ground(
    source=Source.PREEMPTIBLE,
    kind=Kind.LINGJUN,
    prices={"A100": Price(3_000_000, 1_500_000), "": Price(10_000, 10_000)},
)
LINGJUN = Ground(kind=Kind.LINGJUN)
GPUS = Resources(gpus=2, gpu_type="A100")
CPFS = Mount(uri="nas://cpfs-1.cn-hangzhou/", path="/mnt/data")
BMCPFS = Mount(uri="bmcpfs://bmcpfs-1/", path="/mnt/data")
OSS = Mount(uri="oss://bucket.oss-cn-hangzhou.aliyuncs.com/", path="/mnt/data")
NAS = Mount(uri="nas://31a8e4.cn-hangzhou/", path="/mnt/data")
VPC = Network(vpc="vpc-1")


def job(*roles: TaskRole, **fields: Any) -> JobSpec:
    return JobSpec(name="job", roles=roles or (role(),), **fields)


def role(**fields: Any) -> TaskRole:
    return TaskRole(**{"name": "Worker", "command": "python train.py", **fields})


def options(**values: str) -> JobSpec:
    framework = Framework.RAY if any(key.startswith("Ray") for key in values) else Framework.PYTORCH
    return job(framework=framework, framework_options=values)


@dataclass(frozen=True)
class Case:
    """A job and ground of which the rule says something about `path`, and one where it says less.

    What it says is `effect`, and whether the job is against it; less is nothing at all, or nothing against.
    """

    code: str
    pages: tuple[Page, ...]
    section: Section
    spec: JobSpec
    ground: Ground
    path: str
    effect: Effect
    broken: bool = False
    less: tuple[JobSpec, Ground] = field(default_factory=lambda: (job(), QUOTA))


FREE = role(resources=Resources(instance_type="ecs.c6.large"))
CASES = (
    Case("image_reachable", BOTH, ENV, job(role(image="me/mine:1")), QUOTA, "roles[].image", Effect.TELL),
    Case(
        "login_with_image",
        BOTH,
        ENV,
        job(registry_auth=RegistryAuth(username="me")),
        QUOTA,
        "registry_auth",
        Effect.HIDE,
        True,
        less=(job(role(image="i"), registry_auth=RegistryAuth(username="me")), QUOTA),
    ),
    Case(
        "rdma_by_hand",
        BOTH,
        ENV,
        job(role(image="me/mine:1")),
        LINGJUN,
        "roles[].image",
        Effect.TELL,
        less=(job(role(image="dsw-registry-vpc.cn-x.cr.aliyuncs.com/pai/pytorch:1")), LINGJUN),
    ),
    Case(
        "public_data_read_only",
        BOTH,
        ENV,
        job(mounts=(Mount(id="d-open"),)),
        Ground(public_data=frozenset({"d-open"})),
        "mounts[].read_only",
        Effect.OFF,
        True,
        less=(job(mounts=(Mount(id="d-open", read_only=True),)), Ground(public_data=frozenset({"d-open"}))),
    ),
    Case("storage_grant", ZH, ENV, job(mounts=(OSS,)), QUOTA, "mounts[].uri", Effect.TELL),
    Case(
        "cpfs_needs_vpc",
        BOTH,
        ENV,
        job(mounts=(CPFS,)),
        QUOTA,
        "network.vpc",
        Effect.TELL,
        True,
        less=(job(mounts=(CPFS,), network=VPC), QUOTA),
    ),
    Case(
        "cpfs_other_vpc",
        BOTH,
        ENV,
        job(mounts=(CPFS,), network=VPC),
        Ground(vpc_of={CPFS.uri: "vpc-2"}),
        "network.vpc",
        Effect.TELL,
        True,
        less=(job(mounts=(CPFS,), network=VPC), Ground(vpc_of={CPFS.uri: "vpc-1"})),
    ),
    Case(
        "bmcpfs_on_lingjun",
        JA,
        ENV,
        job(mounts=(BMCPFS,)),
        QUOTA,
        "mounts[].uri",
        Effect.TELL,
        True,
        less=(job(mounts=(BMCPFS,)), LINGJUN),
    ),
    Case("oss_by_ossfs", JA, ENV, job(mounts=(OSS,)), QUOTA, "mounts[].options", Effect.TELL),
    Case(
        "nconnect_positive",
        JA,
        ENV,
        job(mounts=(NAS.model_copy(update={"options": {"nconnect": "0"}}),)),
        QUOTA,
        "mounts[].options",
        Effect.TELL,
        True,
        less=(job(mounts=(NAS.model_copy(update={"options": {"nconnect": "4"}}),)), QUOTA),
    ),
    Case("results_in_data", ZH, ENV, job(mounts=(OSS,)), QUOTA, "roles[].command", Effect.TELL),
    Case("variables_injected", BOTH, ENV, job(), QUOTA, "roles[].command", Effect.TELL, less=(job(), QUOTA)),
    Case(
        "variables_most",
        ZH,
        ENV,
        job(env={f"V{n}": "" for n in range(21)}),
        QUOTA,
        "env",
        Effect.BOUND,
        True,
        less=(job(env={f"V{n}": "" for n in range(20)}), QUOTA),
    ),
    Case(
        "libraries_one_way",
        ZH,
        ENV,
        job(requirements=Requirements(packages=("numpy",), directory="/mnt")),
        QUOTA,
        "requirements.directory",
        Effect.TELL,
        True,
        less=(job(requirements=Requirements(packages=("numpy",))), QUOTA),
    ),
    Case(
        "code_access", ZH, ENV, job(code=CodeSource(uri="https://git.example/x")), QUOTA, "code", Effect.TELL
    ),
    Case(
        "kind_where_both",
        ZH,
        RES,
        job(),
        QUOTA,
        "kind",
        Effect.HIDE,
        less=(job(), Ground(kinds=frozenset(Kind))),
    ),
    Case(
        "lingjun_regions",
        BOTH,
        RES,
        job(),
        replace(LINGJUN, region="cn-zhangjiakou"),
        "kind",
        Effect.TELL,
        True,
        less=(job(), replace(LINGJUN, region="cn-wulanchabu")),
    ),
    Case(
        "public_ceiling",
        BOTH,
        RES,
        job(role(resources=GPUS, replicas=2)),
        PUBLIC,
        "roles[].resources.gpus",
        Effect.BOUND,
        True,
        less=(job(role(resources=GPUS)), PUBLIC),
    ),
    Case("public_waits", BOTH, RES, job(), PUBLIC, "source", Effect.TELL),
    Case("billed_by_use", BOTH, RES, job(), SPOT, "source", Effect.TELL),
    Case("billed_ahead", BOTH, RES, job(), QUOTA, "source", Effect.TELL, less=(job(), PUBLIC)),
    Case("quota_for_quota", BOTH, RES, job(quota="q"), PUBLIC, "quota", Effect.HIDE, True),
    Case(
        "spot_on_lingjun",
        ZH,
        RES,
        job(),
        replace(SPOT, kind=Kind.GENERAL),
        "source",
        Effect.TELL,
        True,
        less=(job(), SPOT),
    ),
    Case(
        "spot_region",
        ZH,
        RES,
        job(),
        replace(SPOT, region="cn-beijing"),
        "source",
        Effect.TELL,
        True,
        less=(job(), replace(SPOT, region="cn-wulanchabu")),
    ),
    Case("spot_allowed", ZH, RES, job(), SPOT, "source", Effect.TELL),
    Case("spot_may_go", JA, RES, job(), SPOT, "source", Effect.TELL),
    Case(
        "spot_needs_vpc",
        JA,
        RES,
        job(),
        SPOT,
        "network.vpc",
        Effect.TELL,
        True,
        less=(job(network=VPC), SPOT),
    ),
    Case("priority_for_quota", BOTH, RES, job(priority=5), PUBLIC, "priority", Effect.OFF, True),
    Case("priority_range", BOTH, RES, job(), QUOTA, "priority", Effect.BOUND, less=(job(), QUOTA)),
    Case(
        "frameworks",
        BOTH,
        RES,
        job(framework=Framework.DATA_JUICER),
        QUOTA,
        "framework",
        Effect.OFFER,
        True,
    ),
    Case(
        "lingjun_frameworks",
        BOTH,
        RES,
        job(framework=Framework.XGBOOST),
        LINGJUN,
        "framework",
        Effect.OFFER,
        True,
        less=(job(framework=Framework.RAY), LINGJUN),
    ),
    Case("slurm_older_page", ZH, RES, job(framework=Framework.SLURM), QUOTA, "framework", Effect.TELL),
    Case(
        "roles_of_framework",
        BOTH,
        RES,
        job(role(name="PS"), framework=Framework.PYTORCH),
        QUOTA,
        "roles[].name",
        Effect.OFFER,
        True,
        less=(job(role(name="PS"), framework=Framework.TENSORFLOW), QUOTA),
    ),
    Case("ray_roles", JA, RES, job(framework=Framework.RAY), QUOTA, "roles", Effect.TELL),
    Case("size_by_spec", BOTH, RES, job(), PUBLIC, "roles[].resources.instance_type", Effect.TELL),
    Case(
        "amounts_on_quota",
        BOTH,
        RES,
        job(FREE),
        QUOTA,
        "roles[].resources.instance_type",
        Effect.TELL,
        less=(job(), PUBLIC),
    ),
    Case(
        "bid_for_spot",
        BOTH,
        RES,
        job(role(bid=Bid(discount_percent=40))),
        QUOTA,
        "roles[].bid",
        Effect.HIDE,
        True,
        less=(job(role(bid=Bid(discount_percent=40))), SPOT),
    ),
    Case(
        "bid_discount",
        BOTH,
        RES,
        job(role(bid=Bid(discount_percent=45))),
        SPOT,
        "roles[].bid.discount_percent",
        Effect.BOUND,
        True,
        less=(job(role(bid=Bid(discount_percent=90))), SPOT),
    ),
    Case(
        "bid_price",
        JA,
        RES,
        job(role(bid=Bid(price_micro=6_000_001), resources=GPUS)),
        SPOT,
        "roles[].bid.price_micro",
        Effect.BOUND,
        True,
        less=(job(role(bid=Bid(price_micro=6_000_000), resources=GPUS)), SPOT),
    ),
    Case(
        "bid_reaches",
        BOTH,
        RES,
        job(role(bid=Bid(discount_percent=40), resources=GPUS)),
        SPOT,
        "roles[].bid",
        Effect.TELL,
        less=(job(role(bid=Bid(discount_percent=50), resources=GPUS)), SPOT),
    ),
    Case(
        "nodes_for_quota",
        BOTH,
        RES,
        job(role(nodes=NodeChoice(only=("n1",)))),
        PUBLIC,
        "roles[].nodes",
        Effect.OFF,
        True,
        less=(job(role(nodes=NodeChoice(only=("n1",)))), QUOTA),
    ),
    Case("idle_for_quota", BOTH, RES, job(idle=Idle.ACCEPT), PUBLIC, "idle", Effect.OFF, True),
    Case("idle_goes_back", JA, RES, job(), QUOTA, "idle", Effect.TELL, less=(job(), PUBLIC)),
    Case("affinity_for_quota", JA, RES, job(cpu_affinity=True), SPOT, "cpu_affinity", Effect.OFF, True),
    Case(
        "running_time",
        ZH,
        RES,
        job(),
        QUOTA,
        "time_limit_s",
        Effect.TELL,
        less=(job(time_limit_s=60), QUOTA),
    ),
    Case(
        "retention_holds",
        ZH,
        RES,
        job(reserve_after=Reservation(seconds=600)),
        QUOTA,
        "reserve_after",
        Effect.TELL,
    ),
    Case(
        "retention_deletes",
        ZH,
        RES,
        job(reserve_after=Reservation(seconds=600)),
        QUOTA,
        "reserve_after",
        Effect.TELL,
    ),
    Case("vpc_on_public", ZH, RES, job(network=VPC), QUOTA, "network.vpc", Effect.TELL),
    Case("slow_without_vpc", BOTH, RES, job(), PUBLIC, "network.vpc", Effect.TELL),
    Case("same_region", BOTH, RES, job(network=VPC), QUOTA, "network.vpc", Effect.TELL),
    Case(
        "parts_of_vpc",
        BOTH,
        RES,
        job(network=Network(switch="vsw-1")),
        QUOTA,
        "network.switch",
        Effect.OFF,
        True,
        less=(job(network=Network(vpc="vpc-1", switch="vsw-1")), QUOTA),
    ),
    Case(
        "cidrs_with_switch",
        BOTH,
        RES,
        job(network=Network(vpc="v", switch="s")),
        QUOTA,
        "network.cidrs",
        Effect.TELL,
        True,
        less=(job(network=Network(vpc="v", switch="s", cidrs=("10.0.0.0/8",))), QUOTA),
    ),
    Case(
        "public_gateway",
        BOTH,
        RES,
        job(network=Network(vpc="v", gateway="eth0")),
        QUOTA,
        "network.gateway",
        Effect.TELL,
    ),
    Case(
        "private_gateway",
        BOTH,
        RES,
        job(network=Network(vpc="v", gateway="eth1")),
        QUOTA,
        "network.gateway",
        Effect.TELL,
    ),
    Case(
        "option_of_framework",
        BOTH,
        MORE,
        job(framework=Framework.RAY, framework_options={"customPortList": "1"}),
        QUOTA,
        "framework_options.customPortList",
        Effect.HIDE,
        True,
        less=(options(customPortList="1"), QUOTA),
    ),
    Case(
        "option_values",
        BOTH,
        MORE,
        options(createSvcForAllWorkers="yes"),
        QUOTA,
        "framework_options.createSvcForAllWorkers",
        Effect.OFFER,
        True,
        less=(options(createSvcForAllWorkers="true"), QUOTA),
    ),
    Case(
        "option_numbers",
        JA,
        MORE,
        options(RaySubmitterBackoffLimit="0"),
        QUOTA,
        "framework_options.RaySubmitterBackoffLimit",
        Effect.BOUND,
        True,
        less=(options(RaySubmitterBackoffLimit="3"), QUOTA),
    ),
    Case(
        "ports_one_way",
        BOTH,
        MORE,
        options(customPortList="1", customPortNumPerWorker="2"),
        QUOTA,
        "framework_options.customPortNumPerWorker",
        Effect.OFF,
        True,
        less=(options(customPortNumPerWorker="2"), QUOTA),
    ),
    Case(
        "ports_listed",
        BOTH,
        MORE,
        options(customPortList="one"),
        QUOTA,
        "framework_options.customPortList",
        Effect.TELL,
        True,
        less=(options(customPortList="10000;10001-10010"), QUOTA),
    ),
    Case(
        "ports_not_masters",
        BOTH,
        MORE,
        options(customPortList="23000-24000"),
        QUOTA,
        "framework_options.customPortList",
        Effect.TELL,
        True,
        less=(options(customPortList="23457"), QUOTA),
    ),
    Case(
        "ports_number",
        BOTH,
        MORE,
        options(customPortNumPerWorker="65537"),
        QUOTA,
        "framework_options.customPortNumPerWorker",
        Effect.BOUND,
        True,
        less=(options(customPortNumPerWorker="65536"), QUOTA),
    ),
    Case(
        "no_ports_number_on_lingjun",
        BOTH,
        MORE,
        options(customPortNumPerWorker="2"),
        LINGJUN,
        "framework_options.customPortNumPerWorker",
        Effect.OFF,
        True,
        less=(options(customPortNumPerWorker="2"), QUOTA),
    ),
    Case(
        "workers_reach_each_other",
        BOTH,
        MORE,
        options(),
        QUOTA,
        "framework_options.createSvcForAllWorkers",
        Effect.TELL,
    ),
    Case(
        "ray_env_goes_before",
        JA,
        MORE,
        options(RayRuntimeEnv="{}").model_copy(update={"env": {"A": "1"}}),
        QUOTA,
        "framework_options.RayRuntimeEnv",
        Effect.TELL,
        True,
        less=(options(RayRuntimeEnv="{}"), QUOTA),
    ),
    Case(
        "aimaster_costs",
        BOTH,
        FAULTS,
        job(fault_tolerance=Check(enabled=True)),
        QUOTA,
        "fault_tolerance.enabled",
        Effect.TELL,
    ),
    Case(
        "aimaster_costs_public",
        BOTH,
        FAULTS,
        job(fault_tolerance=Check(enabled=True)),
        PUBLIC,
        "fault_tolerance.enabled",
        Effect.TELL,
    ),
    Case(
        "aimaster_not_here",
        (),
        FAULTS,
        job(fault_tolerance=Check(enabled=True)),
        QUOTA,
        "fault_tolerance.enabled",
        Effect.TELL,
        True,
    ),
    Case(
        "aimaster_frameworks",
        BOTH,
        FAULTS,
        job(framework=Framework.XGBOOST, fault_tolerance=Check(enabled=True)),
        QUOTA,
        "fault_tolerance.enabled",
        Effect.OFF,
        True,
        less=(job(framework=Framework.PYTORCH, fault_tolerance=Check(enabled=True)), QUOTA),
    ),
    Case(
        "sanity_check_where",
        BOTH,
        FAULTS,
        job(role(resources=GPUS), framework=Framework.PYTORCH, sanity_check=Check(enabled=True)),
        QUOTA,
        "sanity_check.enabled",
        Effect.OFF,
        True,
        less=(
            job(role(resources=GPUS), framework=Framework.PYTORCH, sanity_check=Check(enabled=True)),
            LINGJUN,
        ),
    ),
    Case("role_default", BOTH, ROLES, job(instance_role="default"), QUOTA, "instance_role", Effect.TELL),
    Case(
        "role_custom",
        BOTH,
        ROLES,
        job(instance_role="admin"),
        QUOTA,
        "instance_role",
        Effect.TELL,
        True,
        less=(job(instance_role="acs:ram::123:role/trainer"), QUOTA),
    ),
    Case(
        "role_none",
        BOTH,
        ROLES,
        job(),
        QUOTA,
        "instance_role",
        Effect.TELL,
        less=(job(instance_role="default"), QUOTA),
    ),
)
ALWAYS = {"variables_injected", "priority_range"}
"""These two say the same of every job."""


def said(code: str, spec: JobSpec, ground: Ground) -> list[rules.Said]:
    return list(BY_CODE[code].judge(spec, ground))


@pytest.mark.parametrize("case", CASES, ids=[case.code for case in CASES])
def test_rule(case: Case) -> None:
    rule = BY_CODE[case.code]
    assert (rule.pages, rule.section) == (case.pages, case.section)
    found = [each for each in said(case.code, case.spec, case.ground) if each.field == case.path]
    assert [(each.effect, each.broken) for each in found] == [(case.effect, case.broken)]
    less = [each for each in said(case.code, *case.less) if each.field == case.path]
    if case.code in ALWAYS:
        assert less == found
    elif case.broken:
        assert not any(each.broken for each in less)
    else:
        assert less == []


@pytest.mark.parametrize("case", CASES, ids=[case.code for case in CASES])
def test_its_sentence_needs_no_more_than_the_rule_gives(case: Case) -> None:
    for each in said(case.code, case.spec, case.ground):
        text = rule_message(case.code, each.params)
        assert text.endswith(".")
        assert "%(" not in text
        assert "…" not in text


def test_every_rule_is_tested_once_and_has_a_sentence() -> None:
    codes = [rule.code for rule in RULES]
    assert sorted(codes) == sorted(case.code for case in CASES) == sorted(NOTES)
    assert len(set(codes)) == len(codes)


@pytest.mark.parametrize("pages", [BOTH, ZH, JA, ()])
@pytest.mark.parametrize("section", list(Section))
def test_where_a_rule_stands_can_be_told(pages: tuple[Page, ...], section: Section) -> None:
    assert origin_label(pages, section)


# --- what the form makes of them -------------------------------------------------------------------------


def state(field: str, spec: JobSpec, ground: Ground) -> rules.FieldState:
    return rules.fields(rules.rulings(spec, ground))[field]


def test_a_field_that_means_nothing_is_hidden_unless_it_says_something() -> None:
    assert state("roles[].bid", job(), QUOTA).hidden
    said_all_the_same = state("roles[].bid", job(role(bid=Bid(discount_percent=40))), QUOTA)
    assert not said_all_the_same.hidden
    assert [each.code for each in said_all_the_same.told] == ["bid_for_spot"]


def test_a_field_that_is_off_says_why() -> None:
    found = state("priority", job(), PUBLIC)
    assert (found.off, found.hidden, found.why and found.why.code) == (True, False, "priority_for_quota")
    assert (found.least, found.most) == (1, 9)


def test_lingjun_offers_fewer_frameworks() -> None:
    everywhere = state("framework", job(), QUOTA).options
    on_lingjun = state("framework", job(), LINGJUN).options
    assert everywhere is not None
    assert on_lingjun is not None
    assert set(everywhere) - set(on_lingjun) == {Framework.XGBOOST, Framework.ONEFLOW}


def test_ports_by_number_are_off_on_lingjun_and_beside_a_list() -> None:
    for spec, ground in ((options(), LINGJUN), (options(customPortList="1"), QUOTA)):
        assert state("framework_options.customPortNumPerWorker", spec, ground).off
    assert not state("framework_options.customPortNumPerWorker", options(), QUOTA).off


def test_the_ceiling_is_the_quotas_own() -> None:
    found = state("roles[].resources.gpus", job(), replace(PUBLIC, most_gpus=4))
    assert found.most == 4


@given(dlc_specs(), st.sampled_from([QUOTA, PUBLIC, SPOT, LINGJUN]))
def test_what_a_job_says_is_never_hidden_nor_off_and_never_changed(spec: JobSpec, ground: Ground) -> None:
    before = spec.model_dump_json()
    found = rules.rulings(spec, ground)
    for ruling in found:
        assert rule_message(ruling.code, ruling.said.params)
        assert all(0 <= at < max(len(spec.roles), len(spec.mounts)) for at in ruling.said.at)
    for path, field_state in rules.fields(found).items():
        if (field_state.off or field_state.hidden) and path not in {"kind", "mounts[].read_only"}:
            assert not any(says(spec, path)), path
    assert spec.model_dump_json() == before


def says(value: Any, path: str) -> list[bool]:
    """Whether something stands at a path, for each element that it leads to."""
    name, _dot, rest = path.partition(".")
    if name == "framework_options" and rest:
        return [rest in value.framework_options]
    found = getattr(value, name.removesuffix("[]"))
    each = list(found) if name.endswith("[]") else [found]
    if rest:
        return [one for element in each if element is not None for one in says(element, rest)]
    if isinstance(found, NodeChoice):
        return [bool(found.only or found.never)]
    return [bool(element) for element in each]


# --- what is told at submission --------------------------------------------------------------------------


def codes(spec: JobSpec, ground: Ground, dialect: str) -> set[str]:
    return {note.code for note in rules.notes(spec, ground, dialect)}


def test_the_pages_rules_are_told_of_jobs_that_are_bound_for_dlc_alone() -> None:
    spec = job(framework=Framework.XGBOOST)
    assert codes(spec, LINGJUN, "dlc") == codes(spec, LINGJUN, "dlc-params") == {"lingjun_frameworks"}
    assert codes(spec, LINGJUN, "openpai-v1") == set()


def test_what_this_console_does_not_do_is_told_of_every_job() -> None:
    spec = job(framework=Framework.PYTORCH, fault_tolerance=Check(enabled=True))
    assert codes(spec, QUOTA, "aihc") == {"aimaster_not_here"}


def test_what_the_text_tells_by_itself_is_not_told_twice() -> None:
    spec = job(env={f"V{n}": "" for n in range(21)}, framework=Framework.PYTORCH)
    assert "variables_most" not in codes(spec, QUOTA, "dlc")


def test_every_advanced_setting_of_the_pages_is_known() -> None:
    assert [setting.key for setting in SETTINGS] == [
        "ReleaseResourcePolicy",
        "EnableNvidiaIBGDA",
        "EnableNvidiaGDRCopy",
        "EnablePaiNUMACoreBinding",
        "EnableResourcePreCheck",
        "createSvcForAllWorkers",
        "customPortList",
        "customPortNumPerWorker",
        "RayRuntimeEnv",
        "RayRedisAddress",
        "RayRedisUsername",
        "RayRedisPassword",
        "RaySubmitterBackoffLimit",
        "RayObjectStoreMemoryBytes",
    ]
