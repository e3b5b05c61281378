"""Settings of a Kubernetes cluster: each problem is of a field."""

from pathlib import Path
from typing import Any

import pytest

from jobs.backends import registry
from jobs.backends.base import Handle
from jobs.backends.kubernetes.config import KubernetesConfig
from jobs.backends.kubernetes.handles import AttemptRef
from jobs.backends.remote.attempts import InvalidKey

KUBERNETES = registry.find("kubernetes")


def problems(settings: dict[str, Any]) -> list[tuple[str, str]]:
    try:
        KubernetesConfig.from_settings(Path("/console"), settings)
    except ValueError as error:
        found = KUBERNETES.problems(error)
        assert all(KUBERNETES.sentence(each) for each in found)
        return [(each.name, each.code) for each in found]
    return []


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, []),
        ({"kubeconfig": "/etc/kube/config", "context": "lab"}, []),
        ({"context": "lab"}, [("context", "context_alone")]),
        ({"url": "https://k8s:6443", "token": "t"}, []),
        ({"url": "https://k8s:6443"}, [("token", "no_token")]),
        ({"url": "http://k8s:6443", "token": "t"}, [("url", "no_url")]),
        ({"url": "https://u:p@k8s", "token": "t"}, [("url", "no_url")]),
        ({"url": "https://k8s", "token": "t", "kubeconfig": "/a"}, [("url", "two_connections")]),
        ({"namespace": "Upper"}, [("namespace", "no_name")]),
        ({"namespace_prefix": ""}, [("namespace_prefix", "no_name")]),
        ({"image": "a b"}, [("image", "no_image")]),
        ({"kubeconfig": "relative"}, [("kubeconfig", "no_path")]),
        ({"exports": ["nas"]}, [("exports.0", "no_export")]),
        ({"folders": {"relative": {"workspaces": ["*"]}}}, [("folders", "no_folder")]),
        ({"priority_classes": {"10": "high"}}, [("priority_classes.10", "no_priority")]),
        ({"tolerations": ["a b"]}, [("tolerations.0", "no_label")]),
        ({"gpu_label": "a/b/c"}, [("gpu_label", "no_label")]),
        ({"imge": "x"}, [("imge", "unknown_but")]),
    ],
)
def test_settings_problem_names_its_field(settings: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert problems(settings) == expected


def test_token_is_in_no_message_or_representation() -> None:
    config = KubernetesConfig.from_settings(Path("/console"), {"url": "https://k8s", "token": "hunter"})
    assert "hunter" not in repr(config)
    assert "hunter" not in repr(config.connection())


def test_workspaces_have_namespaces_of_their_own_unless_one_is_set() -> None:
    config = KubernetesConfig.from_settings(Path("/console"), {})
    assert config.namespace_of("vision") == "job-console-vision"
    names = {config.namespace_of(slug) for slug in ("x" * 80, "x" * 81, "a_b", "a-b", "A-b", "a-b-")}
    assert len(names) == 6
    assert all(
        AttemptRef(name, "inst-abc-1") == AttemptRef.of(Handle(f"{name}/inst-abc-1")) for name in names
    )
    assert KubernetesConfig.from_settings(Path("/"), {"namespace": "lab"}).namespace_of("vision") == "lab"


@pytest.mark.parametrize(
    "handle",
    ["", "a/b", "1234.inst-job-1", "../inst-job-1", "ns/inst-job-1/../x", "ns/inst-job-1\n", "Ns/inst-job-1"],
)
def test_handle_of_another_maker_is_refused(handle: str) -> None:
    with pytest.raises(InvalidKey):
        AttemptRef.of(handle)  # type: ignore[arg-type]


def test_handle_survives_being_stored() -> None:
    attempt = AttemptRef("job-console-vision", "inst-abc-1")
    assert AttemptRef.of(attempt.handle) == attempt
