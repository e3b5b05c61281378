"""Storage of a cluster that stands for ids and addresses of other systems, as its setting `datasets` says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Final
from urllib.parse import quote

from pydantic import AfterValidator, BeforeValidator

from jobs.backends.base import Refused
from jobs.backends.settings import invalid
from jobs.backends.staging import remotes
from jobs.facilities import EVERYBODY, StorageMapping, find_mapping, local_path, without_login
from jobs.states import Reason, ReasonCode

SETTING: Final = "datasets"


@dataclass(frozen=True, slots=True)
class Dataset:
    """A folder, or a part of an object store, that job files call by an id or by a URI of another system.

    `path` is where it is mounted if they do not say, `workspaces` are those whose jobs may use it.  `bucket`
    is an address such as `s3://bucket/folder`; the keys reach what copies the data, never the job.
    """

    folder: str = ""
    path: str = ""
    read_only: bool = False
    workspaces: tuple[str, ...] = (EVERYBODY,)
    bucket: str = ""
    endpoint: str = ""
    region: str = ""
    access_key: str = ""
    secret_key: str = field(default="", repr=False)

    @property
    def options(self) -> dict[str, str]:
        """Return the options with which the bucket is reached."""
        return {"endpoint": self.endpoint, "region": self.region}

    @property
    def bucket_with_login(self) -> str:
        """Return the bucket's address with the keys in it; for the backend alone."""
        scheme, _, rest = self.bucket.partition("://")
        login = f"{quote(self.access_key, safe='')}:{quote(self.secret_key, safe='')}@"
        return f"{scheme}://{login}{rest}" if self.secret_key else self.bucket

    def below(self, rest: str) -> Dataset:
        """Return the part of it at a relative path."""
        if not rest:
            return self
        if self.bucket:
            return replace(self, bucket=f"{self.bucket.rstrip('/')}/{rest}")
        return replace(self, folder=f"{self.folder.rstrip('/')}/{rest}")


def find_dataset(datasets: Mapping[str, Dataset], id_: str, uri: str, workspace: str) -> Dataset | None:
    """Return the storage that stands for an id or an address, or for the longest address around that.

    Raises Refused for jobs of a workspace that may not use it, and for an address that leads out of it.
    """
    address = without_login(uri)
    name = find_mapping(datasets, id_, address)
    if name is None:
        return None
    dataset = datasets[name]
    if not StorageMapping(dataset.workspaces).admits(workspace):
        raise _refusal("storage_not_allowed", id_ or address, workspace)
    rest = "" if name == id_ else address[len(name) :].strip("/")
    if ".." in rest.split("/"):
        raise _refusal("mount_not_allowed", address, workspace)
    return dataset.below(rest)


def describe_mappings(datasets: Mapping[str, Dataset]) -> dict[str, StorageMapping]:
    """Return what the console needs to know of the mappings."""
    return {name: StorageMapping(each.workspaces, each.folder) for name, each in datasets.items()}


def _refusal(why: str, place: str, workspace: str) -> Refused:
    params = {"why": why, "place": place, "workspace": workspace, "setting": SETTING}
    return Refused(Reason(ReasonCode.REFUSED, params))


def _read(dataset: object) -> object:
    return {"folder": dataset} if isinstance(dataset, str) else dataset


def _check(dataset: Dataset) -> Dataset:
    """Refuse what is neither a folder of the nodes nor an address of an object store."""
    if bool(dataset.folder) == bool(dataset.bucket):
        raise invalid("storage_target")
    if dataset.bucket:
        found = remotes.read(dataset.bucket, dataset.options)
        if found is None or not found.can_be_written or without_login(dataset.bucket) != dataset.bucket:
            raise invalid("storage_bucket", value=without_login(dataset.bucket))
    return dataset


def _check_folder(dataset: Dataset) -> Dataset:
    """Refuse what is no absolute path on the nodes, which copy nothing from object stores."""
    if dataset.bucket or local_path(dataset.folder) is None or ".." in dataset.folder.split("/"):
        raise invalid("storage_folder")
    return dataset


Datasets = dict[str, Annotated[Dataset, BeforeValidator(_read), AfterValidator(_check)]]
FolderDatasets = dict[
    str, Annotated[Dataset, BeforeValidator(_read), AfterValidator(_check), AfterValidator(_check_folder)]
]
