"""Every address, every kind of person: generated from the URL configuration.

A new address has to be given an audience here before it can land.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.contrib.sessions.backends.db import SessionStore
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from pytest_django import DjangoDbBlocker

from jobs.api.vendors.api import VENDOR
from jobs.assets.uploads import uploaded_trees
from jobs.client import wheel_builder
from jobs.models import (
    AccessSession,
    Channel,
    Dataset,
    DatasetVersion,
    Delivery,
    Draft,
    Endpoint,
    ExternalJob,
    Job,
    NotificationRule,
    PersonalSecret,
    Replica,
    SshKey,
    StackDump,
    Sweep,
    SweepRun,
    Template,
    Visibility,
)
from jobs.notifications import composition
from jobs.states import State
from jobs.submission import dry_runs, templates
from jobs.trees import Tree
from quotas import encryption
from quotas.accounts.session_store import reference_of
from quotas.models import (
    AccessKey,
    AccessToken,
    Cluster,
    JobPolicy,
    Maintenance,
    Node,
    Quota,
    Role,
    SignIn,
    User,
)
from tests.confirmed import confirm
from tests.factories import (
    attempt_of,
    make_cluster,
    make_endpoint,
    make_job,
    make_membership,
    make_quota,
    make_spec,
    make_template,
    make_user,
    make_workspace,
    replica_of,
)

pytestmark = [pytest.mark.django_db, pytest.mark.once]


class Audience(Enum):
    """Who gets past the door of an address."""

    EVERYBODY = "everybody"
    SIGNED_IN = "signed in"
    LISTERS = "members of the job's workspace"
    READERS = "the owner, the workspace's admins; members if the job is public"
    CONTROLLERS = "the owner and the workspace's admins"
    MINE = "the owner of the draft or token alone"
    KEEPERS = "admins of a workspace"
    ITS_KEEPERS = "admins of that workspace"
    REVIEWERS = "its owner and admins of the workspace that it is offered to; the admins decide"
    STAFF = "the console's admins"
    OPERATORS = "the console's admins, and programs by a token of their own"
    GUESTS = "members of a workspace with a quota on the cluster"
    NOBODY = "no person: jobs, each by a token of its own"


E, S, L, R, C, M = (
    Audience.EVERYBODY,
    Audience.SIGNED_IN,
    Audience.LISTERS,
    Audience.READERS,
    Audience.CONTROLLERS,
    Audience.MINE,
)
K, W, G, N = Audience.KEEPERS, Audience.ITS_KEEPERS, Audience.GUESTS, Audience.NOBODY

ADDRESSES: dict[str, tuple[str, Audience]] = {
    "livez": ("get", E),
    "readyz": ("get", E),
    "healthz": ("get", E),
    "metrics": ("get", Audience.OPERATORS),
    "login": ("get", E),
    "logout": ("post", E),
    "jsi18n": ("get", E),
    "set_language": ("post", E),
    "set_theme": ("post", S),
    "banner_dismiss": ("post", S),
    "home": ("get", S),
    "search": ("get", S),
    "audit": ("get", K),
    "audit_export": ("get", K),
    "reports": ("get", S),
    "site_schema": ("get", E),
    "client": ("get", E),
    "api_usage": ("get", S),
    "documentation": ("get", S),
    "documentation_page": ("get", S),
    "documentation_image": ("get", E),
    "settings": ("get", S),
    "account_login": ("get", E),
    "account_logout": ("post", E),
    "account_signup": ("get", E),
    "account_inactive": ("get", E),
    "account_reset_password": ("get", E),
    "account_reset_password_done": ("get", E),
    "account_reset_password_from_key_done": ("get", E),
    "account_email_verification_sent": ("get", E),
    "account_reauthenticate": ("get", S),
    "account_change_password": ("get", S),
    "account_set_password": ("get", S),
    "account_email": ("get", S),
    "socialaccount_login_cancelled": ("get", E),
    "socialaccount_connections": ("get", S),
    "sign_in_settings": ("get", S),
    "sign_in_end": ("post", M),
    "sign_ins_end": ("post", S),
    "connection_remove": ("post", M),
    "mfa_index": ("get", S),
    "mfa_list_webauthn": ("get", S),
    "settings_ssh_keys": ("post", S),
    "settings_secrets": ("post", S),
    "settings_workspaces": ("get", S),
    "secret_remove": ("post", M),
    "ssh_key_remove": ("post", M),
    "settings_tokens": ("post", S),
    "token_revoke": ("post", M),
    "settings_access_keys": ("post", S),
    "access_key_rotate": ("post", M),
    "access_key_revoke": ("post", M),
    "live": ("get", S),
    "jobs": ("get", S),
    "job_new": ("get", S),
    "courier_here": ("get", E),
    "courier": ("post", N),
    "courier_fetch": ("get", N),
    "tracking": ("post", N),
    "job_check": ("post", S),
    "job_fix": ("post", S),
    "job_form_panel": ("post", S),
    "job_form_sent": ("post", S),
    "job_form_dry_run_new": ("post", S),
    "job_form_dry_run": ("get", M),
    "job_convert": ("post", S),
    "job_form_change": ("post", S),
    "job_form_read": ("post", S),
    "jobs_change": ("post", S),
    "jobs_compare": ("get", S),
    "jobs_export": ("get", S),
    "job_view_save": ("post", S),
    "job_view_delete": ("post", S),
    "job_columns": ("post", S),
    "job_star": ("post", L),
    "job_label": ("post", C),
    "job": ("get", L),
    "job_logs": ("get", R),
    "job_merged_logs": ("get", R),
    "job_stacks": ("get", R),
    "job_stacks_new": ("post", C),
    "job_stream": ("get", L),
    "job_history": ("get", R),
    "job_difference": ("post", S),
    "job_file": ("get", R),
    "job_stop": ("post", C),
    "job_hold": ("post", C),
    "job_keep": ("post", C),
    "job_extend": ("post", C),
    "job_release": ("post", C),
    "job_instead": ("post", C),
    "job_retry": ("post", R),
    "job_share": ("post", C),
    "job_delete": ("post", C),
    "job_key": ("post", C),
    "entry_end": ("post", C),
    "terminal_new": ("post", C),
    "job_files_content": ("get", C),
    "job_files_zip": ("post", C),
    "job_files_change": ("post", C),
    "job_files_keep": ("post", C),
    "job_files_dataset": ("post", C),
    "endpoint_open": ("get", C),
    "job_opening": ("get", C),
    "start": ("get", S),
    "start_template": ("get", S),
    "templates": ("get", S),
    "template_new": ("get", S),
    "template": ("get", M),
    "template_file": ("get", M),
    "template_edit": ("get", M),
    "template_change": ("post", M),
    "drafts": ("get", S),
    "draft_save": ("post", S),
    "draft_versions": ("get", M),
    "draft_file": ("get", M),
    "draft_delete": ("post", M),
    "notifications": ("get", S),
    "notifications_bell": ("get", S),
    "notifications_read": ("post", S),
    "channel_confirm": ("get", E),
    "unsubscribe": ("get", E),
    "channels": ("get", S),
    "channel_new": ("get", S),
    "channel": ("get", M),
    "channel_test": ("post", M),
    "channel_switch": ("post", M),
    "channel_rotate": ("post", M),
    "channel_remove": ("post", M),
    "rule_new": ("post", M),
    "rule_remove": ("post", M),
    "delivery_again": ("post", M),
    "workspace_channels": ("get", W),
    "workspace_channel_new": ("get", W),
    "assets": ("get", S),
    "asset_new": ("get", K),
    "asset": ("get", L),
    "asset_edit": ("get", W),
    "asset_take_away": ("post", W),
    "asset_bring_back": ("post", W),
    "asset_test": ("post", L),
    "asset_version_new": ("post", W),
    "asset_version_choose": ("post", W),
    "api_assets": ("get", S),
    "api_asset": ("get", L),
    "api_asset_test": ("post", L),
    "nodes": ("get", S),
    "quotas": ("get", S),
    "workspace_quotas": ("get", W),
    "workspace_quota_new": ("get", W),
    "workspace_quota": ("get", W),
    "workspace_policy_new": ("get", W),
    "workspace_policy": ("get", W),
    "queue": ("get", K),
    "queue_change": ("post", K),
    "api_jobs": ("get", S),
    "api_job": ("get", L),
    "api_job_replicas": ("get", R),
    "api_job_tasks": ("get", R),
    "api_job_stop": ("post", C),
    "api_job_file": ("get", R),
    "api_job_again": ("post", R),
    "api_job_hold": ("post", C),
    "api_job_release": ("post", C),
    "api_job_endpoints": ("get", C),
    "api_job_ssh_access": ("post", C),
    "api_job_events": ("get", R),
    "api_job_stacks": ("get", R),
    "api_job_stacks_one": ("get", R),
    "api_job_logs": ("get", R),
    "api_job_merged_logs": ("get", R),
    "api_job_training_metrics": ("get", R),
    "api_job_stream": ("get", L),
    "api_job_files": ("get", C),
    "api_job_files_content": ("get", C),
    "api_job_files_zip": ("get", C),
    "api_job_files_keep": ("post", C),
    "api_job_files_dataset": ("post", C),
    "api_job_files_folder": ("post", C),
    "api_job_files_rename": ("post", C),
    "sweeps": ("get", S),
    "jobs_others": ("get", S),
    "jobs_others_log": ("get", G),
    "sweep": ("get", L),
    "sweep_file": ("get", R),
    "sweep_stop": ("post", C),
    "sweep_again": ("post", C),
    "sweep_change": ("post", C),
    "api_sweeps": ("post", S),
    "api_sweep": ("get", L),
    "api_sweep_file": ("get", R),
    "api_sweep_stop": ("post", C),
    "api_sweep_again": ("post", C),
    "api_templates": ("get", S),
    "api_template_file": ("post", M),
    "api_uploads_missing": ("post", S),
    "api_uploads_blob": ("get", S),
    "api_uploads_pack": ("post", S),
    "api_uploads_trees": ("post", S),
    "api_uploads_tree": ("get", M),
    "api_check": ("post", S),
    "api_preview": ("post", S),
    "api_convert": ("post", S),
    "api_job_keep": ("post", C),
    "api_job_extend": ("post", C),
    "api_job_suggestions": ("get", C),
    "api_job_replace": ("post", C),
    "api_job_history": ("get", R),
    "api_job_difference": ("post", R),
    "api_external_jobs": ("get", S),
    "api_external_job_log": ("get", G),
    "api_drafts": ("get", S),
    "api_draft": ("get", M),
    "api_draft_versions": ("get", M),
    "api_dry_runs": ("post", S),
    "api_dry_run": ("get", M),
    "api_quotas": ("get", S),
    "api_nodes": ("get", S),
    "api_me": ("get", S),
    "api_tokens": ("get", S),
    "api_token": ("delete", M),
    "api_ssh_keys": ("get", S),
    "api_ssh_key": ("delete", M),
    "api_secrets": ("get", S),
    "api_secret": ("delete", M),
    "api_notifications": ("get", S),
    "api_notifications_read": ("post", S),
    "api_channels": ("get", S),
    "api_channel": ("delete", M),
    "api_channel_test": ("post", M),
    "api_template": ("get", M),
    "api_template_versions": ("get", M),
    "api_template_version": ("get", M),
    "api_template_adopt": ("post", Audience.REVIEWERS),
    "api_template_decline": ("post", Audience.REVIEWERS),
    "api_admin_people": ("get", Audience.STAFF),
    "api_admin_person": ("get", Audience.STAFF),
    "api_admin_person_deactivate": ("post", Audience.STAFF),
    "api_admin_person_activate": ("post", Audience.STAFF),
    "api_admin_person_password_link": ("post", Audience.STAFF),
    "api_admin_workspaces": ("get", Audience.STAFF),
    "api_admin_workspace": ("get", Audience.STAFF),
    "api_admin_members": ("get", Audience.STAFF),
    "api_admin_member": ("delete", Audience.STAFF),
    "api_admin_quotas": ("get", Audience.STAFF),
    "api_admin_quota": ("get", Audience.STAFF),
    "api_admin_nodes": ("get", Audience.STAFF),
    "api_admin_node": ("get", Audience.STAFF),
    "api_admin_node_state": ("put", Audience.STAFF),
    "api_admin_windows": ("get", Audience.STAFF),
    "api_admin_window_preview": ("post", Audience.STAFF),
    "api_admin_window": ("get", Audience.STAFF),
    "api_admin_job_priority": ("put", Audience.STAFF),
    "api_schema": ("get", E),
    "dialect_schema": ("get", E),
}
"""Address name → method and audience.  Django admin's are generated below."""

OFFERED_TEMPLATES = ("api_template_adopt", "api_template_decline")
OF_TEMPLATES = (
    *OFFERED_TEMPLATES,
    "template",
    "template_file",
    "template_edit",
    "template_change",
    "api_template_file",
    "api_template",
    "api_template_versions",
    "api_template_version",
)
DRAFTS = ("draft_versions", "draft_file", "draft_delete")
API_TWINS = {
    "api_draft": ("draft", "draft_file"),
    "api_draft_versions": ("draft", "draft_versions"),
    "api_dry_run": ("dry_run", "job_form_dry_run"),
    "api_external_job_log": ("job", "jobs_others_log"),
    "api_token": ("token", "token_revoke"),
    "api_ssh_key": ("key", "ssh_key_remove"),
}
"""Address of the API → the name of its argument, and the page's address that is about the same thing."""
WAYS_IN = ("sign_in_end", "connection_remove", "token_revoke", "access_key_rotate", "access_key_revoke")

BUTTONS = [
    name
    for name, (method, audience) in ADDRESSES.items()
    if method == "post" and not name.startswith("api_") and audience is not N
]

READ = [name for name, (_method, audience) in ADDRESSES.items() if audience is R and "sweep" not in name]
"""A sweep is never public, whatever its jobs are."""
STACK_DUMPS = {"job_stacks": "pk", "api_job_stacks_one": "dump"}
SIGN_OUT = {"logout", "account_logout"}
"""Ends at the sign-in page whoever asks."""

HALFWAY = {
    "account_confirm_email",
    "account_reset_password_from_key",
    "break_glass",
    "invitation",
    "invitation_revoke",
    "invite",
    "member_change",
    "members",
    "service_change",
    "service_key_new",
    "service_key_revoke",
    "service_key_rotate",
    "service_new",
    "service_token_new",
    "service_token_revoke",
    "mfa_activate_totp",
    "mfa_add_webauthn",
    "mfa_authenticate",
    "mfa_deactivate_totp",
    "mfa_download_recovery_codes",
    "mfa_edit_webauthn",
    "mfa_generate_recovery_codes",
    "mfa_login_webauthn",
    "mfa_reauthenticate",
    "mfa_reauthenticate_webauthn",
    "mfa_remove_webauthn",
    "mfa_view_recovery_codes",
    "oidc_callback",
    "oidc_ended",
    "oidc_login",
    "socialaccount_login_error",
    "socialaccount_signup",
}
"""Steps on the way in, second factors, and members: tests/console/{accounts,views} go through them."""

ARRAY = "#!/bin/sh\n#SBATCH --array=1\ntrue\n"
"""The file of a sweep that came as one."""

WITH: dict[str, dict[str, Any]] = {
    "template_change": {"do": "retire"},
    "job_logs": {"role": "main", "index": 0},
    "api_job_logs": {"role": "main", "index": 0},
}
"""What an address needs besides its path."""

PEOPLE = ("anonymous", "stranger", "member", "owner", "manager", "admin")
FEWER = ("anonymous", "stranger", "owner", "admin")
"""Who asks where everybody, or everybody who is signed in, is let in: other roles are between these."""

LET_IN: dict[Audience, frozenset[str]] = {
    Audience.EVERYBODY: frozenset(PEOPLE),
    Audience.SIGNED_IN: frozenset(PEOPLE) - {"anonymous"},
    Audience.LISTERS: frozenset({"member", "owner", "manager", "admin"}),
    Audience.GUESTS: frozenset({"member", "owner", "manager", "admin"}),
    Audience.READERS: frozenset({"owner", "manager", "admin"}),
    Audience.CONTROLLERS: frozenset({"owner", "manager", "admin"}),
    Audience.MINE: frozenset({"owner"}),
    Audience.KEEPERS: frozenset({"manager", "admin"}),
    Audience.ITS_KEEPERS: frozenset({"manager", "admin"}),
    Audience.REVIEWERS: frozenset({"manager", "admin"}),
    Audience.OPERATORS: frozenset({"admin"}),
    Audience.STAFF: frozenset({"admin"}),
    Audience.NOBODY: frozenset(),
}


def names(patterns: list[Any], namespace: str = "") -> Iterator[str]:
    """Every named address of the configuration."""
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            inner = f"{namespace}{pattern.namespace}:" if pattern.namespace else namespace
            yield from names(pattern.url_patterns, inner)
        elif isinstance(pattern, URLPattern):
            yield f"{namespace}{pattern.name or pattern.callback.__name__}"


ALL = sorted(set(names(get_resolver().url_patterns)))


@dataclass
class World:
    """A running job of `owner` with an endpoint, and everybody, each signed in by a cookie."""

    users: dict[str, User]
    job: Job
    endpoint: Endpoint
    cookies: dict[str, str]

    def client(self, who: str) -> Client:
        client = Client()
        if who != "anonymous":
            client.cookies[settings.SESSION_COOKIE_NAME] = self.cookies[who]
        return client

    def channel(self) -> Channel:
        address = encryption.encrypt('{"url": "https://example.com/hook", "secret": "x"}')
        columns = {"ciphertext": address, "verified_at": "2026-01-01T00:00:00Z"}
        return Channel.objects.get_or_create(person=self.users["owner"], kind="webhook", defaults=columns)[0]

    def of_notifications(self, name: str) -> list[dict[str, Any]]:
        """The arguments of an address about notifications; none for any other."""
        if name in {"channel_confirm", "unsubscribe"}:
            purpose = "on" if name == "channel_confirm" else "off"
            return [{"ticket": composition.ticket(self.channel(), purpose)}]
        if name == "rule_remove":
            return [{"pk": NotificationRule.objects.get_or_create(channel=self.channel())[0].pk}]
        if name == "delivery_again":
            return [{"public_id": Delivery.objects.get_or_create(channel=self.channel())[0].public_id}]
        if name.startswith("workspace_channel"):
            slug = self.job.workspace.slug
            return [{"slug": slug}, {"slug": slug, "kind": "webhook"}]
        if name in {"api_channel", "api_channel_test"}:
            return [{"channel": self.channel().pk}]
        if name == "rule_new" or (name.startswith("channel") and name != "channels"):
            return [{"pk": self.channel().pk}, {"kind": "webhook"}]
        return []

    def _of_quota(self, name: str) -> dict[str, Any]:
        """The arguments of an address about quotas of the workspace: a part of one, and a policy for it."""
        whole = self.job.quota
        made = {"name": "Part", "parent": whole}
        part, _new = Quota.objects.get_or_create(
            workspace=whole.workspace, cluster=whole.cluster, slug="part", defaults=made
        )
        policy, _new = JobPolicy.objects.get_or_create(quota=part, by_workspace=True)
        keys = {"workspace_quota": part.pk, "workspace_policy": policy.pk}
        return {"slug": whole.workspace.slug, **({"pk": keys[name]} if name in keys else {})}

    def _of_asset(self, name: str) -> dict[str, Any]:
        """The arguments of an address about a dataset of the workspace, with a version."""
        if name in {"asset_new", "api_assets"}:
            return {"kind": "datasets"}
        row, _new = Dataset.objects.get_or_create(workspace=self.job.workspace, name="set")
        DatasetVersion.objects.get_or_create(dataset=row, number=1)
        one = {"kind": "datasets", "key": row.key}
        return {**one, "number": 1} if name == "asset_version_choose" else one

    def address(self, name: str) -> str:
        candidates: list[dict[str, Any]] = [
            {},
            {"public_id": self.job.public_id},
            {"job_id": self.job.public_id},
            {"dialect": "dlc"},
        ]
        if (own := self._own(name)) is not None:
            candidates = [own]
        candidates = self.of_notifications(name) or self._of_administration(name) or candidates
        for kwargs in candidates:
            try:
                return reverse(name, kwargs=kwargs)
            except Exception:  # noqa: BLE001 the next shape of arguments
                continue
        raise AssertionError(f"no arguments for {name}")

    def _sweep(self) -> Sweep:
        """A sweep of the owner's, of one job."""
        job = self.job
        made, _new = Sweep.objects.get_or_create(
            owner=job.owner, workspace=job.workspace, defaults={"name": "sweep", "at_once": 1, "file": ARRAY}
        )
        SweepRun.objects.get_or_create(sweep=made, job=job, number=1)
        return made

    def _stack_dump(self) -> int:
        """A stack dump of the job."""
        return StackDump.objects.get_or_create(attempt=attempt_of(self.job))[0].pk

    def _of_template(self, name: str) -> dict[str, Any]:
        """The arguments of an address about a template of the owner's, offered where that is needed."""
        owner = self.users["owner"]
        row = Template.objects.first() or make_template(owner)
        if name in OFFERED_TEMPLATES:
            templates.propose(owner, row, self.job.workspace)
        one = {"template": row.public_id}
        return {**one, "number": 1} if name == "api_template_version" else one

    def _of_administration(self, name: str) -> list[dict[str, Any]]:
        """The arguments of an address of the administration's API; none for any other."""
        if not name.startswith("api_admin_"):
            return []
        node, _new = Node.objects.get_or_create(cluster=self.job.cluster, name="n1")
        window, _new = Maintenance.objects.get_or_create(
            text="x", from_at="2100-01-01T00:00:00Z", until_at="2100-01-02T00:00:00Z"
        )
        person = {"username": self.users["member"].username}
        space = {"workspace": self.job.workspace.slug}
        found: dict[str, dict[str, Any]] = {
            "workspace": space,
            "members": space,
            "member": {**space, **person},
            "quota": {"quota": self.job.quota_id},
            "node": {"cluster": self.job.cluster.slug, "name": node.name},
            "window": {"window": window.pk},
            "job_priority": {"public_id": self.job.public_id},
        }
        found["node_state"] = found["node"]
        short = name.removeprefix("api_admin_")
        return [person if short.startswith("person") else found.get(short, {})]

    def _own(self, name: str) -> dict[str, Any] | None:
        """The arguments of an address that is about something of its own; None for the others."""
        owner = self.users["owner"]
        makers: dict[str, Callable[[], int]] = {
            "banner_dismiss": lambda: 1,
            **dict.fromkeys(DRAFTS, lambda: Draft.objects.get_or_create(owner=owner)[0].pk),
            **{way: partial(_way_in, owner, way) for way in WAYS_IN},
            "secret_remove": lambda: PersonalSecret.objects.get_or_create(owner=owner, name="X")[0].pk,
            "ssh_key_remove": lambda: _key(owner),
            "jobs_others_log": lambda: _of_others(self.job),
            "entry_end": lambda: _entry(owner, replica_of(self.job)),
            "job_form_dry_run": lambda: dry_runs.ask(owner, self.job.quota, make_spec()).pk,
        }
        if name in makers:
            return {"pk": makers[name]()}
        if name in API_TWINS:
            argument, page = API_TWINS[name]
            return {argument: makers[page]()}
        about_quotas = name.startswith(("workspace_quota", "workspace_polic"))
        if about_quotas or (name.startswith(("asset", "api_asset")) and name != "assets"):
            return self._of_quota(name) if about_quotas else self._of_asset(name)
        words: dict[str, dict[str, Any]] = {
            "endpoint_open": {"slug": self.endpoint.slug},
            "start_template": {"template": "jupyterlab"},
            "client": {"name": wheel_builder.file_name()},
            "documentation_page": {"name": "sweeps"},
            "documentation_image": {"name": "overview"},
            "api_uploads_blob": {"sha256": "0" * 64},
            "courier": {"key": "b1-job1-1"},
            "api_secret": {"name": PersonalSecret.objects.get_or_create(owner=owner, name="X")[0].name},
            "courier_fetch": {"key": "b1-job1-1", "name": "secrets"},
            "tracking": {"key": "b1-job1-1", "position": 0, "operation": "runs/create"},
        }
        if name.startswith(("sweep", "api_sweep")) and not name.endswith("sweeps"):
            return {"public_id": self._sweep().public_id}
        if name == "api_uploads_tree":
            return {"sha256": uploaded_trees.make(owner, Tree(())).sha256}
        if name in STACK_DUMPS:
            return {"public_id": self.job.public_id, STACK_DUMPS[name]: self._stack_dump()}
        if name in OF_TEMPLATES:
            return self._of_template(name)
        return words.get(name)


def _key(owner: User) -> int:
    return SshKey.objects.get_or_create(user=owner, fingerprint="SHA256:x")[0].pk


def _entry(owner: User, replica: Replica) -> int:
    return AccessSession.objects.get_or_create(user=owner, replica=replica, kind="ssh")[0].pk


def _of_others(job: Job) -> int:
    """A job that others run on the cluster of `job`, whose log lies in a folder that an admin lists."""
    log = Path(__file__)  # any file, of its owner
    Cluster.objects.filter(pk=job.cluster_id).update(config={"logs": [str(log.parent)]})
    columns = {"output": str(log), "running": True, "user": log.owner()}
    return ExternalJob.objects.get_or_create(cluster=job.cluster, number="1", defaults=columns)[0].pk


def _way_in(owner: User, name: str) -> int:
    if name == "connection_remove":
        return SocialAccount.objects.get_or_create(user=owner, provider="x")[0].pk
    if name == "token_revoke":
        columns = {"scopes": [], "expires_at": "2100-01-01T00:00:00Z", "user": owner}
        return AccessToken.objects.get_or_create(prefix="jc_x", defaults=columns)[0].pk
    if name.startswith("access_key"):
        columns = {"scopes": [], "user": owner}
        return AccessKey.objects.get_or_create(key_id="JCAKx", defaults=columns)[0].pk
    session = SessionStore()
    session.create()
    return SignIn.objects.create(user=owner, session_key=reference_of(session.session_key)).pk


@pytest.fixture(scope="module")
def whole_world(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    """The rows of all tests here, in a transaction around those of the tests."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield _make_world()
        transaction.set_rollback(True)


def _make_world() -> World:
    users = {who: make_user(who) for who in PEOPLE[1:-1]}
    users["admin"] = make_user("root", admin=True)
    roles = {"member": Role.DEVELOPER, "owner": Role.DEVELOPER, "manager": Role.ADMIN}
    workspace = make_workspace("vision", members={users[who]: role for who, role in roles.items()})
    make_membership(users["stranger"], make_workspace("elsewhere"))
    quota = make_quota(workspace, make_cluster("local"), "default")
    job = make_job(State.RUNNING, owner=users["owner"], quota=quota)
    cookies = {who: _sign_in(user) for who, user in users.items()}
    return World(users, job, make_endpoint(replica_of(job)), cookies)


def _sign_in(user: User) -> str:
    """Return the cookie of somebody who may change how they sign in until the last test has ended."""
    client = Client()
    client.force_login(user)
    confirm(client, valid_for=24 * 3600)
    return client.cookies[settings.SESSION_COOKIE_NAME].value


@pytest.fixture
def world(whole_world: World, db: None) -> World:
    """A test's own copy, which it may change; its rows are as they were when it has ended."""
    return deepcopy(whole_world)


def outcomes(world: World, name: str, people: Iterable[str] = PEOPLE) -> dict[str, str]:
    """`in`, `sign in`, `refused` or `hidden` for each of them; whatever was done is taken back."""
    method, address = ADDRESSES.get(name, ("get", E))[0], world.address(name)
    told = {}
    for who in people:
        with transaction.atomic():
            response = getattr(world.client(who), method)(address, WITH.get(name, {}))
            transaction.set_rollback(True)
        told[who] = _told(response)
    return told


def _told(response: Any) -> str:
    if response.status_code == 302 and response.headers["Location"].startswith(("/sign-in", "/admin/login")):
        return "sign in"
    return {401: "sign in", 403: "refused", 404: "hidden"}.get(response.status_code, "in")


def test_addresses_all_have_an_audience() -> None:
    # The operations of vendors' APIs are walked by tests/jobs/api/vendors/test_operation_tables.py.
    here = {name for name in ALL if not name.startswith("admin:") and name != VENDOR}
    assert here == set(ADDRESSES) | HALFWAY


@pytest.mark.parametrize("name", [name for name in ADDRESSES if name not in SIGN_OUT])
def test_address_admits_exactly_its_audience(world: World, name: str) -> None:
    audience = ADDRESSES[name][1]
    people = FEWER if audience in {E, S} else PEOPLE
    assert outcomes(world, name, people) == {who: expected(audience, who) for who in people}


def expected(audience: Audience, who: str) -> str:
    """Strangers do not learn that there is such a thing; members are told that it is not theirs."""
    if who in LET_IN[audience]:
        return "in"
    if audience is Audience.OPERATORS:
        return "refused"
    if who == "anonymous" or audience is Audience.NOBODY:
        return "sign in"
    if audience in {Audience.KEEPERS, Audience.STAFF}:
        return "refused"
    if audience is Audience.REVIEWERS:
        return "refused" if who == "owner" else "hidden"
    return "hidden" if who == "stranger" or audience is Audience.MINE else "refused"


@pytest.fixture(scope="module")
def pages() -> dict[tuple[str, str], tuple[int, str]]:
    """Status and text of pages that were looked at, by person and address: many buttons lead to one."""
    return {}


@pytest.mark.parametrize("name", BUTTONS)
def test_button_address_opened_directly_leads_to_a_page(
    world: World, pages: dict[tuple[str, str], tuple[int, str]], name: str
) -> None:
    who = "manager" if ADDRESSES[name][1] in {W, K} else "owner"
    client = world.client(who)
    page = client.get(world.address(name), headers={"Accept": "text/html"})
    status, text = page.status_code, page.content.decode()
    if status in {301, 302}:
        place = who, page.headers["Location"]
        if place not in pages:
            page = client.get(place[1], headers={"Accept": "text/html"}, follow=True)
            pages[place] = page.status_code, page.content.decode()
        status, text = pages[place]
    assert status == 200
    assert "<h1" in text


@pytest.mark.parametrize("name", READ)
def test_public_job_is_readable_by_members_but_not_by_strangers(world: World, name: str) -> None:
    Job.objects.filter(pk=world.job.pk).update(visibility=Visibility.PUBLIC)
    assert outcomes(world, name, ["member", "stranger"]) == {"member": "in", "stranger": "hidden"}


@pytest.mark.parametrize("name", [name for name in ADDRESSES if ADDRESSES[name][1] is not E])
def test_disabled_account_is_refused_at_every_address(world: World, name: str) -> None:
    address = world.address(name)
    client = world.client("owner")
    User.objects.filter(pk=world.users["owner"].pk).update(is_active=False)
    assert _told(getattr(client, ADDRESSES[name][0])(address)) != "in"


LISTS = [name for name in ALL if name.startswith("admin:") and name.endswith(("_changelist", "_add"))]


@pytest.mark.parametrize("name", LISTS)
def test_django_admin_is_limited_to_console_admins(world: World, name: str) -> None:
    told = outcomes(world, name)
    assert told.pop("admin") in {"in", "refused"}, "what only the console writes cannot be added"
    assert set(told.values()) == {"sign in"}
