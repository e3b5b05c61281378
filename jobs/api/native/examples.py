"""Examples of the OpenAPI document, one a shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jobs.api.native import shapes
from jobs.api.native.account import (
    AccountShape,
    KeyShape,
    NewKeyShape,
    SecretShape,
    SecretValueShape,
    TokenShape,
)
from jobs.api.native.drafts import DraftSummaryShape, NewDraftShape
from jobs.api.native.dry_runs import DryRunShape
from jobs.api.native.job_actions import SuggestionShape
from jobs.api.native.lineage import ComparisonShape, DifferenceShape
from jobs.api.native.resources import NodeShape, QuotaShape
from jobs.api.native.sweeps import AtOnceShape, SweepRequestShape, SweepSummaryShape
from jobs.api.native.template_content import NewTemplateShape
from jobs.api.native.templates import AnswersShape, FilledShape

_FILE: Final = """\
#!/bin/bash
#SBATCH --job-name=hello --cpus-per-task=1 --mem=256M

echo hello
"""
_JOB: Final[Mapping[str, Any]] = {
    "id": "k3v9x0q2m7ab",
    "name": "hello",
    "state": "RUNNING",
    "phase": "Running",
    "reason": {"code": "running", "message": "Running."},
    "owner": "olga",
    "workspace": "vision",
    "cluster": "local",
    "quota": "default",
    "priority": 1,
    "visibility": "PRIVATE",
    "version": 3,
    "attempt": 1,
    "run": 1,
    "replicas": 1,
    "replicas_running": 1,
    "replicas_failed": 0,
    "gpus": 0,
    "gpu_type": "",
    "created_at": "2026-11-24T09:30:00Z",
    "started_at": "2026-11-24T09:30:02Z",
    "ended_at": None,
    "expires_at": None,
    "idle_since": None,
}
_REPLICA: Final[Mapping[str, Any]] = {
    "role": "main",
    "index": 0,
    "attempt": 1,
    "run": 1,
    "state": "RUNNING",
    "exit_code": None,
    "signal": None,
    "node": "node-1",
    "endpoints": [],
}
_TARGET: Final = {"workspace": "vision", "cluster": "local", "quota": "default"}

EXAMPLES: Final[Mapping[type[shapes.ApiShape], Mapping[str, Any]]] = {
    shapes.JobShape: _JOB,
    shapes.WholeJobShape: {
        **_JOB,
        "description": "the new tokenizer",
        "tags": ["team=nlp"],
        "after": [],
        "notes": [],
        "tasks": [_REPLICA],
        "tasks_next": None,
        "failure": None,
    },
    shapes.ReplicaShape: _REPLICA,
    shapes.SubmissionShape: {"file": _FILE, "dialect": "sbatch", **_TARGET},
    shapes.CheckShape: {"file": _FILE},
    shapes.ConversionShape: {"file": _FILE, "to": "openpai-v1"},
    shapes.JobChangeShape: {"visibility": "PUBLIC"},
    shapes.HoldShape: {"reason": "waits for the new data"},
    shapes.JobFileShape: {"dialect": "sbatch", "text": _FILE, "roles": ["main"]},
    shapes.EventShape: {
        "id": 17,
        "at": "2026-11-24T09:30:02Z",
        "kind": "started",
        "attempt": 1,
        "actor": None,
        "params": {},
    },
    shapes.ProblemDetails: {
        "type": "about:blank",
        "title": "Not Found",
        "status": 404,
        "detail": "Not found, or no permission.",
    },
    AccountShape: {
        "username": "olga",
        "is_admin": False,
        "scopes": ["read", "submit"],
        "workspaces": [{"workspace": "vision", "name": "Vision", "role": "developer"}],
    },
    TokenShape: {
        "id": 4,
        "name": "CI",
        "prefix": "jc_0123456789",
        "scopes": ["read", "submit"],
        "created_at": "2026-11-24T09:00:00Z",
        "expires_at": "2026-12-24T09:00:00Z",
        "last_used_at": None,
    },
    NewKeyShape: {
        "text": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8 olga",
        "title": "laptop",
    },
    KeyShape: {
        "id": 2,
        "title": "laptop",
        "algorithm": "ssh-ed25519",
        "fingerprint": "SHA256:d5g2p0SjZzBZ7Yc0UoCwQzr0sYw0hV5d8b4n2c6yT1M",
        "job": None,
        "created_at": "2026-11-24T09:00:00Z",
        "last_used_at": None,
    },
    SecretShape: {"name": "HF_TOKEN", "created_at": "2026-11-24T09:00:00Z"},
    SecretValueShape: {"value": "hf_0123456789"},
    NewDraftShape: {"file": _FILE, "dialect": "sbatch", "target": "vision/local/default"},
    DraftSummaryShape: {
        "id": 8,
        "name": "hello",
        "dialect": "sbatch",
        "target": "vision/local/default",
        "template": "",
        "version": 1,
        "created_at": "2026-11-24T09:00:00Z",
        "updated_at": "2026-11-24T09:00:00Z",
    },
    DryRunShape: {
        "id": 5,
        "state": "done",
        "findings": [{"ok": True, "message": "The cluster accepts the job.", "pointer": ""}],
        "created_at": "2026-11-24T09:00:00Z",
        "ended_at": "2026-11-24T09:00:01Z",
    },
    SuggestionShape: {"kind": "gpus", "value": "2"},
    ComparisonShape: {"job": "k3v9x0q2m7ab"},
    DifferenceShape: {
        "changes": [
            {
                "pointer": "/roles/0/command",
                "field": "Start command",
                "before": "0.1",
                "after": "0.01",
                "what": "--lr",
            }
        ],
        "lines": ["-python train.py --lr 0.1", "+python train.py --lr 0.01"],
    },
    QuotaShape: {
        "target": "vision/local/default",
        **_TARGET,
        "name": "Default",
        "may_submit": True,
        "jobs": 1,
        "resources": [{"kind": "gpu", "used": 2, "reserved": 0, "borrowed": 0, "limit": 8, "free": 6}],
    },
    NodeShape: {
        "cluster": "local",
        "name": "node-1",
        "state": "schedulable",
        "gpus": {"V100": 8},
        "cpu_milli": 64_000,
        "memory_mib": 262_144,
        "holdings": [],
    },
    SweepRequestShape: {"file": _FILE, "grid": {"env.LR": [0.1, 0.01]}, "at_once": 1},
    SweepSummaryShape: {
        "id": "b7w2k9d4x1yz",
        "name": "hello",
        "owner": "olga",
        "workspace": "vision",
        "at_once": 1,
        "states": {"RUNNING": 1, "QUEUED": 1},
    },
    AtOnceShape: {"at_once": 4},
    NewTemplateShape: {
        "name": "Training",
        "file": _FILE,
        "dialect": "sbatch",
        "constraints": {"/roles/0/command": "locked"},
    },
    AnswersShape: {"answers": {"name": "hello"}},
    FilledShape: {"template": "training-7f3a@1", "dialect": "sbatch", "text": _FILE},
}
