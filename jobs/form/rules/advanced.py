"""Rules of the framework's advanced settings: their frameworks and values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from jobs.dialects.dlc import conditions, limits
from jobs.dialects.dlc.settings_keys import ADVANCED
from jobs.form.rules.base import Page, Rule, Section, Statement, bound, disable, hide, offer, tell, when
from jobs.form.target import JobTarget
from jobs.spec import JobSpec

AT: Final = "framework_options"
YES_NO: Final = ("true", "false")
RAY_ENV: Final = "RayRuntimeEnv"


@dataclass(frozen=True, slots=True)
class Setting:
    """One advanced setting: its help, and its values where there are few, or that it is a number."""

    key: str
    values: tuple[str, ...] = ()
    number: bool = False
    help: str = ""


_VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "ReleaseResourcePolicy": ("pod-exit",),
    **dict.fromkeys(
        (
            "EnableNvidiaIBGDA",
            "EnableNvidiaGDRCopy",
            "EnablePaiNUMACoreBinding",
            "EnableResourcePreCheck",
            "createSvcForAllWorkers",
        ),
        YES_NO,
    ),
}
_NUMBERS: Final = frozenset({"RaySubmitterBackoffLimit", "RayObjectStoreMemoryBytes"})

SETTINGS: Final = tuple(
    Setting(rule.key, _VALUES.get(rule.key, ()), rule.key in _NUMBERS, rule.help) for rule in ADVANCED.known
)
"""All that the pages list, in their order."""


def _of_framework(spec: JobSpec, _ground: JobTarget) -> Iterator[Statement]:
    for setting in SETTINGS:
        if not conditions.is_for_framework(setting.key, spec.framework):
            needs = conditions.find_needed_job_type(setting.key)
            broken = setting.key in spec.framework_options
            yield hide(f"{AT}.{setting.key}", broken=broken, key=setting.key, needs=needs)


def _values(spec: JobSpec, _ground: JobTarget) -> Iterator[Statement]:
    for setting in SETTINGS:
        if setting.values:
            value = spec.framework_options.get(setting.key)
            broken = value is not None and value not in setting.values
            listed = ", ".join(setting.values)
            yield offer(
                f"{AT}.{setting.key}", options=setting.values, broken=broken, key=setting.key, values=listed
            )


def _numbers(spec: JobSpec, _ground: JobTarget) -> Iterator[Statement]:
    for setting in SETTINGS:
        if setting.number:
            value = spec.framework_options.get(setting.key)
            broken = value is not None and not (value.isascii() and value.isdigit() and int(value[:20]) > 0)
            yield bound(f"{AT}.{setting.key}", least=1, broken=broken, key=setting.key)


def _ports_one_way(spec: JobSpec, _ground: JobTarget) -> Iterator[Statement]:
    both = conditions.has_both_port_settings(spec.framework_options)
    for key, other in (
        (conditions.PORT_LIST, conditions.PORT_NUMBER),
        (conditions.PORT_NUMBER, conditions.PORT_LIST),
    ):
        if other in spec.framework_options:
            yield disable(f"{AT}.{key}", broken=both, key=key, other=other)


def _faults(spec: JobSpec) -> dict[str, str]:
    return dict(conditions.find_port_faults(spec.framework_options))


def _master_port(spec: JobSpec, _ground: JobTarget) -> Iterator[Statement]:
    if conditions.is_for_framework(conditions.PORT_LIST, spec.framework):
        broken = "master_port_listed" in _faults(spec)
        yield tell(f"{AT}.{conditions.PORT_LIST}", broken=broken, port=limits.MASTER_PORT)


def _port_number(spec: JobSpec, _ground: JobTarget) -> Iterator[Statement]:
    most = limits.MOST_CUSTOM_PORTS.value
    broken = "not_a_port_number" in _faults(spec)
    yield bound(f"{AT}.{conditions.PORT_NUMBER}", least=0, most=most, broken=broken, limit=most)


def _no_number_on_lingjun(spec: JobSpec, target: JobTarget) -> Iterator[Statement]:
    if target.lingjun:
        broken = conditions.PORT_NUMBER in spec.framework_options
        yield disable(f"{AT}.{conditions.PORT_NUMBER}", broken=broken)


def _ray_env(spec: JobSpec, _ground: JobTarget) -> Iterator[Statement]:
    if RAY_ENV in spec.framework_options:
        overridden = bool(spec.env or spec.secret_env or spec.requirements.packages)
        yield tell(f"{AT}.{RAY_ENV}", broken=overridden)


_HERE: Final = Section.APPENDIX
_JA: Final = (Page.JAPANESE,)

RULES: Final = (
    Rule("option_of_framework", _HERE, _of_framework),
    Rule("option_values", _HERE, _values),
    Rule("option_numbers", _HERE, _numbers, _JA),
    Rule("ports_one_way", _HERE, _ports_one_way),
    Rule(
        "ports_listed",
        _HERE,
        when(
            lambda spec, _ground: "not_a_port_list" in _faults(spec),
            tell(f"{AT}.{conditions.PORT_LIST}", broken=True),
        ),
    ),
    Rule("ports_not_masters", _HERE, _master_port),
    Rule("ports_number", _HERE, _port_number),
    Rule("no_ports_number_on_lingjun", _HERE, _no_number_on_lingjun),
    Rule(
        "workers_reach_each_other",
        _HERE,
        when(
            lambda spec, _ground: conditions.is_for_framework("createSvcForAllWorkers", spec.framework),
            tell(f"{AT}.createSvcForAllWorkers"),
        ),
    ),
    Rule("ray_env_goes_before", _HERE, _ray_env, _JA),
)
