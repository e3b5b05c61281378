"""The rules of PAI-DLC's two pages, one by one: where each stands, when it speaks, when it is silent."""

from __future__ import annotations

import pytest

from jobs.form import rules
from jobs.form.rules import BY_CODE, RULES, Page, Section
from jobs.form.rules.advanced import SETTINGS
from jobs.form.target import JobTarget
from jobs.messages.rules import NOTES, origin_label, rule_message
from jobs.spec import JobSpec
from tests.jobs.form.cases import advanced, environment, faults, resources
from tests.jobs.form.cases.base import BOTH, JA, ZH, Case

CASES = (*environment.CASES, *resources.CASES, *advanced.CASES, *faults.CASES)
ALWAYS = {"variables_injected", "priority_range"}
"""These two say the same of every job."""


def said(code: str, spec: JobSpec, target: JobTarget) -> list[rules.Statement]:
    return list(BY_CODE[code].judge(spec, target))


@pytest.mark.parametrize("case", CASES, ids=[case.code for case in CASES])
def test_rule_case_has_the_expected_effect(case: Case) -> None:
    rule = BY_CODE[case.code]
    assert (rule.pages, rule.section) == (case.pages, case.section)
    found = [each for each in said(case.code, case.spec, case.target) if each.field == case.path]
    assert [(each.effect, each.broken) for each in found] == [(case.effect, case.broken)]
    less = [each for each in said(case.code, *case.less) if each.field == case.path]
    if case.code in ALWAYS:
        assert less == found
    elif case.broken:
        assert not any(each.broken for each in less)
    else:
        assert less == []


@pytest.mark.parametrize("case", CASES, ids=[case.code for case in CASES])
def test_rule_message_needs_only_params_the_rule_gives(case: Case) -> None:
    for each in said(case.code, case.spec, case.target):
        text = rule_message(case.code, each.params)
        assert text.endswith(".")
        assert "%(" not in text
        assert "…" not in text


def test_rules_are_each_tested_once_and_have_a_sentence() -> None:
    codes = [rule.code for rule in RULES]
    assert sorted(codes) == sorted(case.code for case in CASES) == sorted(NOTES)
    assert len(set(codes)) == len(codes)


@pytest.mark.parametrize("pages", [BOTH, ZH, JA, ()])
@pytest.mark.parametrize("section", list(Section))
def test_rule_origin_has_a_label(pages: tuple[Page, ...], section: Section) -> None:
    assert origin_label(pages, section)


def test_advanced_settings_match_those_of_the_pages() -> None:
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
