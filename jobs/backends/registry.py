"""The backends of this console: the only place that names their packages.

A package has the modules `backend` (`BACKEND`, its class) and `config` (`CONFIG`, the model of its clusters'
settings, of which a backend is made); `labels` (`LABEL`, `SETTINGS`, `PROBLEMS`), `support` (`SUPPORT`) and
`vendor` (`VENDOR`) where it has more to say than what is said of every backend.  Each is imported
when it is first needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Final

from jobs.backends.base import Backend, Unreachable
from jobs.backends.settings import PROBLEMS, SettingField, SettingProblem, Settings, fields_of, problems_of
from jobs.backends.support import EVERYWHERE, USUAL, Support

PACKAGES: Final = {
    "kubernetes": "jobs.backends.kubernetes",
    "local": "jobs.backends.local",
    "ray": "jobs.backends.ray",
    "slurm": "jobs.backends.slurm",
}
"""Backend name, as clusters store it → its package."""


class NoSuchBackend(Unreachable):
    """The console has no backend of this name: the cluster's jobs are left as they are."""

    def __init__(self, name: str) -> None:
        super().__init__(f"There is no backend “{name}”. Backends: {', '.join(names())}.")


@dataclass(frozen=True, slots=True)
class Registration:
    """A backend, as the rest of the console knows it."""

    name: str
    package: str

    def _load(self, module: str, name: str, default: Any = None) -> Any:
        found = _import(f"{self.package}.{module}")
        return default if found is None else getattr(found, name)

    def make(self, config: Settings) -> Backend:
        """Return a backend with these settings."""
        return self.backend(config)  # type: ignore[call-arg]

    @property
    def backend(self) -> type[Backend]:
        """Its class, which is made of its settings."""
        found: type[Backend] = self._load("backend", "BACKEND")
        return found

    @property
    def has_scheduler(self) -> bool:
        """Whether its engine schedules jobs itself."""
        return bool(self.backend.has_scheduler)

    @property
    def config(self) -> type[Settings]:
        """The model of its clusters' settings."""
        found: type[Settings] = self._load("config", "CONFIG")
        return found

    @property
    def label(self) -> str:
        """Its name for people, marked for translation."""
        return str(self._load("labels", "LABEL", self.name))

    @property
    def labels(self) -> Mapping[str, tuple[str, str]]:
        """The label and the help text of each setting that an admin may set, marked for translation."""
        found: Mapping[str, tuple[str, str]] = self._load("labels", "SETTINGS", {})
        return found

    @property
    def vendor(self) -> str:
        """The vendor whose pages bind its jobs; "" where they run at this site."""
        return str(self._load("vendor", "VENDOR", ""))

    @property
    def support(self) -> Mapping[str, Support]:
        """The support of each field of a job."""
        return {**EVERYWHERE, **USUAL, **self._load("support", "SUPPORT", {})}

    def fields(self) -> list[SettingField]:
        """Return the settings that an admin may set."""
        return fields_of(self.config, list(dict.fromkeys(name.partition(".")[0] for name in self.labels)))

    def problems(self, error: Exception) -> list[SettingProblem]:
        """Return the problems for which the model refused settings."""
        return problems_of(self.config, error)

    def sentence(self, problem: SettingProblem) -> str:
        """Return the sentence of a problem, marked for translation, its parameters not filled in."""
        sentences: Mapping[str, str] = self._load("labels", "PROBLEMS", {})
        return sentences.get(problem.code) or PROBLEMS[problem.code]


@cache
def _import(path: str) -> ModuleType | None:
    return import_module(path) if find_spec(path) else None


def find(name: str) -> Registration:
    """Return the backend of this name.  Raises NoSuchBackend."""
    if name not in PACKAGES:
        raise NoSuchBackend(name)
    return Registration(name, PACKAGES[name])


def support_of(name: str) -> Mapping[str, Support]:
    """Return the support of each field of a job on a backend; of an unknown one, what all have."""
    return find(name).support if name in PACKAGES else EVERYWHERE


def vendor_of(name: str) -> str:
    """Return the vendor to which jobs of a backend go; "" where they run at this site."""
    return find(name).vendor if name in PACKAGES else ""


def names() -> list[str]:
    """Return the names of all backends."""
    return sorted(PACKAGES)
