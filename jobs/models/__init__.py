"""The rows of this application, one idea a module."""

from jobs.models.assets import (
    ASSETS,
    Asset,
    AssetCheck,
    AssetKind,
    AssetUse,
    CodeSource,
    Dataset,
    DatasetCopy,
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
from jobs.models.fault_patterns import FaultPattern
from jobs.models.idempotency import StoredAnswer
from jobs.models.job_lists import ChosenColumns, JobStar, SavedView
from jobs.models.jobs import Dependency, Event, Job, JobFile, Visibility
from jobs.models.log_sinks import LogCursor, LogSink
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
from jobs.models.replica_restarts import ReplicaRestart
from jobs.models.retention import RetentionDays, RetentionKind, RetentionPolicy, RetentionTally
from jobs.models.sanity_checks import SanityCheck
from jobs.models.secrets import JobSecret, PersonalSecret
from jobs.models.site_storage import SiteStorage, SiteStorageCluster
from jobs.models.stack_dumps import StackDump
from jobs.models.sweeps import Sweep, SweepRun
from jobs.models.tags import JobTag
from jobs.models.templates import Template, TemplateUse, TemplateVersion
from jobs.models.tracking import TrackingExperiment, TrackingRun
from jobs.models.training_metrics import EventFile, MetricsCursor, TrainingPoints, TrainingSeries
from jobs.models.uploads import Blob, HeldBlob, HeldTree, StoredObject, TreeUse, UploadedTree
from jobs.models.usage import Idleness, LogProgress, MeasuredCluster, MetricAlert, ReplicaUsage

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
    "ChosenColumns",
    "CodeSource",
    "Dataset",
    "DatasetCopy",
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
    "EventFile",
    "ExternalJob",
    "FaultPattern",
    "Guarded",
    "HeldBlob",
    "HeldTree",
    "Idleness",
    "Image",
    "Job",
    "JobFile",
    "JobSecret",
    "JobStar",
    "JobTag",
    "LogChunk",
    "LogCursor",
    "LogProgress",
    "LogSink",
    "LogStream",
    "MeasuredCluster",
    "MetricAlert",
    "MetricsCursor",
    "Notification",
    "NotificationEvent",
    "NotificationRule",
    "PersonalSecret",
    "QuotaLevel",
    "RamRole",
    "Replica",
    "ReplicaRestart",
    "ReplicaUsage",
    "RetentionDays",
    "RetentionKind",
    "RetentionPolicy",
    "RetentionTally",
    "Run",
    "SanityCheck",
    "SavedView",
    "SiteStorage",
    "SiteStorageCluster",
    "SshKey",
    "StackDump",
    "StoredAnswer",
    "StoredObject",
    "Sweep",
    "SweepRun",
    "Template",
    "TemplateUse",
    "TemplateVersion",
    "TerminalTicket",
    "TrackingExperiment",
    "TrackingRun",
    "TrainingPoints",
    "TrainingSeries",
    "TreeUse",
    "UploadedTree",
    "Visibility",
    "Vpc",
]
