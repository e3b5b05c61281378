"""OpenPAI's errors: their codes, statuses and sentences."""

from __future__ import annotations

from jobs.api.vendors.api import VendorError
from quotas.models import User


def invalid_parameters(message: str) -> VendorError:
    """Return the error of a request that its schema refuses."""
    return VendorError(400, "InvalidParametersError", message)


def invalid_protocol(message: str) -> VendorError:
    """Return the error of a job file of protocol version 2 that can't be accepted."""
    return VendorError(400, "InvalidProtocolError", message)


def no_job(name: str) -> VendorError:
    """Return the error for a job that the caller can't know of."""
    return VendorError(404, "NoJobError", f"Job {name} is not found.")


def no_job_config(name: str) -> VendorError:
    """Return the error for a job whose file can't be shown."""
    return VendorError(404, "NoJobConfigError", f"Config of job {name} is not found.")


def no_ssh_info(name: str) -> VendorError:
    """Return the error for a job that can't be entered by SSH now."""
    return VendorError(404, "NoJobSshInfoError", f"SSH info of job {name} is not found.")


def no_task_log() -> VendorError:
    """Return the error for a task that has no log."""
    return VendorError(404, "NoTaskLogError", "Log of task is not found.")


def no_tag(name: str, tag: str) -> VendorError:
    """Return the error for a tag that the job does not have."""
    return VendorError(404, "NoTagError", f"Tag {tag} is not found for job {name}.")


def no_virtual_cluster(name: str) -> VendorError:
    """Return the error for a virtual cluster that the caller can't know of."""
    return VendorError(404, "NoVirtualClusterError", f"Virtual cluster {name} is not found.")


def no_group(name: str) -> VendorError:
    """Return the error for a group that the caller does not belong to."""
    return VendorError(404, "NoGroupError", f"Group {name} is not found.")


def no_storage(name: str) -> VendorError:
    """Return the error for a storage that does not exist."""
    return VendorError(404, "NoStorageError", f"Storage {name} is not found.")


def no_user(name: str) -> VendorError:
    """Return the error for a user who does not exist."""
    return VendorError(404, "NoUserError", f"User {name} is not found.")


def no_token() -> VendorError:
    """Return the error for a token that is none of the caller's."""
    return VendorError(404, "NoTokenError", "Token is not found.")


def forbidden(user: User, action: str) -> VendorError:
    """Return the error for somebody who is not allowed to do `action`."""
    message = f"User {user.get_username()} is not allowed to {action}."
    return VendorError(403, "ForbiddenUserError", message)


def forbidden_in(user: User, virtual_cluster: str) -> VendorError:
    """Return the error for somebody who can't submit to a virtual cluster that they see."""
    message = f"User {user.get_username()} is not allowed to do operation in {virtual_cluster}"
    return VendorError(403, "ForbiddenUserError", message)


def not_an_admin() -> VendorError:
    """Return the error for somebody who does not administer the console."""
    return VendorError(403, "ForbiddenUserError", "Non-admin is not allow to do this operation.")


def conflicting_job(message: str) -> VendorError:
    """Return the error for a name that a job of the same person has."""
    return VendorError(409, "ConflictJobError", message)
