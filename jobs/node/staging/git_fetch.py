"""Fetching the code that a plan asks for into a replica's own folder, with git."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Final

from jobs.node.command import Command
from jobs.node.measure import StepBudget
from jobs.node.sandbox.bind_mounts import open_source
from jobs.node.sandbox.root_file_system import BindMount
from jobs.node.staging import data_transfer, git, mount_paths
from jobs.node.staging.mount_specs import CodeSpec, MountKind, MountSpec
from jobs.node.wrapper.launch_arguments import LaunchArguments
from jobs.node.wrapper.outcome import Cause, Exit
from jobs.node.wrapper.steps import StagingSite, StagingStep, StepRunner

_KEY: Final = ".git-key"


def _source_path(index: int) -> str:
    """Return where git finds a repository of this machine, in a replica's root file system."""
    return f"{mount_paths.CONSOLE_FOLDER}/source-{index}"


def mounts(launch: LaunchArguments) -> list[BindMount]:
    """Open the repositories of this machine that code is fetched from; MountFailed."""
    return [
        BindMount(
            _source_path(index),
            open_source(MountSpec("", MountKind.FOLDER, code.folder), launch.owner),
            True,
            anywhere=True,
        )
        for index, code in enumerate(launch.plan.codes)
        if code.git and code.folder
    ]


def fetch(site: StagingSite, index: int, steps: StepRunner) -> Exit | None:
    """Fetch the plan's code number `index`; the Exit of a replica that has thereby ended."""
    launch, code = site.launch, site.launch.plan.codes[index]
    source = code.uri or (_source_path(index) if site.viewed else code.folder)
    patience = StepBudget(code.patience_s, site.seen(code.bound), code.most_bytes)
    own = launch.secrets.get("env", {}).get(git.KEY_SECRET)
    text = str(launch.secrets.get(f"{_login_name(code)}_key") or own or "").rstrip("\n")
    with site.private_file(_KEY, f"{text}\n") if text else contextlib.nullcontext("") as key:
        env = _environment(site, index, key)
        guarded = code.shut and not _has_proxy(env)
        guard = data_transfer.guard(launch, code, viewed=site.viewed) if guarded else ()
        trouble = None
        for commands in git.commands(code, source, site.folder(code.bound)):
            for argv in commands:
                before = guard if git.connects(argv) else ()
                command = site.wrap(Command([*before, *argv], env, "/", launch.owner))
                trouble = steps.run(StagingStep(Cause.CODE, command, code.name, site.inside, patience))
                if trouble is not None:
                    break
            if trouble is None or trouble.cause is not Cause.CODE or patience.why:
                break
        return trouble


def _environment(site: StagingSite, index: int, key: str) -> dict[str, str]:
    launch, code = site.launch, site.launch.plan.codes[index]
    job_env = {} if code.alone else {**launch.plan.env, **launch.place.role.env}
    login = str(launch.secrets.get(_login_name(code)) or "")
    config = f"{mount_paths.CONSOLE_FOLDER if site.viewed else launch.path}/{git.CONFIG}"
    own = git.environment(code.uri, job_env, config, login, key, submodules=code.submodules)
    return {**own, **site.environment()}


def _login_name(code: CodeSpec) -> str:
    """Return the name of its login among the attempt's secrets."""
    return "code_dir" if code.is_code_dir else "code"


def _has_proxy(env: Mapping[str, str]) -> bool:
    """Tell whether a proxy that the job names looks up the host, and not this machine."""
    return any("proxy" in name.lower() and not name.lower().startswith("no_") for name in env)
