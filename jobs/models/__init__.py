"""The rows of this application, one idea a module."""

from jobs.models.assets import (
    ASSETS,
    Asset,
    AssetCheck,
    AssetKind,
    AssetUse,
    CodeSource,
    Dataset,
    DatasetVersion,
    Guarded,
    Image,
    RamRole,
    Vpc,
)
from jobs.models.attempts import Attempt, Endpoint, EndpointVisit, Replica, Run
from jobs.models.drafts import Draft, DraftVersion
from jobs.models.dry_runs import DryRun
from jobs.models.entries import AccessSession, SshKey, TerminalTicket
from jobs.models.external_jobs import ExternalJob
from jobs.models.idempotency import StoredAnswer
from jobs.models.jobs import Dependency, Event, Job, JobFile, Visibility
from jobs.models.logs import LogChunk, LogStream
from jobs.models.notifications import (
    Channel,
    Delivery,
    DeliveryItem,
    Notification,
    NotificationEvent,
    NotificationRule,
    QuotaLevel,
)
from jobs.models.secrets import JobSecret, PersonalSecret
from jobs.models.sweeps import Sweep, SweepRun
from jobs.models.tags import JobTag
from jobs.models.templates import Template, TemplateUse, TemplateVersion
from jobs.models.uploads import Blob, HeldBlob, HeldTree, StoredObject, TreeUse, UploadedTree
from jobs.models.usage import Idleness, LogProgress, MeasuredCluster, ReplicaUsage

__all__ = [
    "ASSETS",
    "AccessSession",
    "Asset",
    "AssetCheck",
    "AssetKind",
    "AssetUse",
    "Attempt",
    "Blob",
    "Channel",
    "CodeSource",
    "Dataset",
    "DatasetVersion",
    "Delivery",
    "DeliveryItem",
    "Dependency",
    "Draft",
    "DraftVersion",
    "DryRun",
    "Endpoint",
    "EndpointVisit",
    "Event",
    "ExternalJob",
    "Guarded",
    "HeldBlob",
    "HeldTree",
    "Idleness",
    "Image",
    "Job",
    "JobFile",
    "JobSecret",
    "JobTag",
    "LogChunk",
    "LogProgress",
    "LogStream",
    "MeasuredCluster",
    "Notification",
    "NotificationEvent",
    "NotificationRule",
    "PersonalSecret",
    "QuotaLevel",
    "RamRole",
    "Replica",
    "ReplicaUsage",
    "Run",
    "SshKey",
    "StoredAnswer",
    "StoredObject",
    "Sweep",
    "SweepRun",
    "Template",
    "TemplateUse",
    "TemplateVersion",
    "TerminalTicket",
    "TreeUse",
    "UploadedTree",
    "Visibility",
    "Vpc",
]
