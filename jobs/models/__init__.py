"""The rows of this application, one idea a module."""

from jobs.models.assets import (
    ASSETS,
    Asset,
    AssetKind,
    AssetTrial,
    AssetUse,
    CodeSource,
    Dataset,
    DatasetVersion,
    Guarded,
    Image,
    RamRole,
    Vpc,
)
from jobs.models.attempts import Attempt, Run
from jobs.models.channels import Channel, Rule
from jobs.models.dependencies import Dependency
from jobs.models.drafts import Draft, DraftVersion
from jobs.models.dryruns import DryRun
from jobs.models.endpoints import Endpoint
from jobs.models.entries import Entry
from jobs.models.events import Event
from jobs.models.jobs import Job, JobFile, Visibility
from jobs.models.logs import LogChunk, LogStream
from jobs.models.notices import Delivery, DeliveryItem, Notice, Occasion, QuotaLevel
from jobs.models.others import OtherJob
from jobs.models.secrets import JobSecret, PersonalSecret
from jobs.models.ssh_keys import SshKey
from jobs.models.sweeps import Sweep, SweepRun
from jobs.models.tasks import Task
from jobs.models.templates import Template, TemplateUse, TemplateVersion
from jobs.models.uploads import Blob, HeldBlob, HeldTree, StoredObject, TreeUse, UploadedTree
from jobs.models.use import Idleness, MeasuredCluster, TaskUse
from jobs.models.visits import EndpointVisit

__all__ = [
    "ASSETS",
    "Asset",
    "AssetKind",
    "AssetTrial",
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
    "Entry",
    "Event",
    "Guarded",
    "HeldBlob",
    "HeldTree",
    "Idleness",
    "Image",
    "Job",
    "JobFile",
    "JobSecret",
    "LogChunk",
    "LogStream",
    "MeasuredCluster",
    "Notice",
    "Occasion",
    "OtherJob",
    "PersonalSecret",
    "QuotaLevel",
    "RamRole",
    "Rule",
    "Run",
    "SshKey",
    "StoredObject",
    "Sweep",
    "SweepRun",
    "Task",
    "TaskUse",
    "Template",
    "TemplateUse",
    "TemplateVersion",
    "TreeUse",
    "UploadedTree",
    "Visibility",
    "Vpc",
]
