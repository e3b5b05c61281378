"""Names and explanations of a Kubernetes cluster's settings, and their problems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.backends.settings import NAMENODES
from jobs.backends.settings import mark as _

LABEL: Final = _("Kubernetes")

SETTINGS: Final[Mapping[str, tuple[str, str]]] = {
    "kubeconfig": (
        _("kubeconfig file"),
        _("Path on the console's machine. Empty: the address below, or the console's own account."),
    ),
    "context": (_("Context"), _("Context in the kubeconfig file. Empty: its current one.")),
    "url": (_("API server address"), _("Without a kubeconfig file: https://host:6443.")),
    "token": (
        _("Token"),
        _("Token of the console's service account. Stored encrypted and never shown again."),
    ),
    "ca": (
        _("CA certificate"),
        _("Certificate of the API server's CA, as PEM. Empty: the machine's own CAs."),
    ),
    "namespace": (
        _("Namespace"),
        _("Namespace of all jobs. Empty: one for each workspace, whose name begins with the prefix."),
    ),
    "namespace_prefix": (
        _("Namespace prefix"),
        _("Followed by a workspace's short name: job-console-vision."),
    ),
    "create_namespaces": (
        _("Create namespaces"),
        _("Create the namespace of a workspace with its first job. Otherwise an admin creates them."),
    ),
    "image": (_("Default image"), _("For roles without an image. Empty: they are refused.")),
    "git_image": (_("Image with git"), _("Fetches git repositories. Empty: the role's own image.")),
    "pull_secret": (
        _("Pull secret"),
        _("Secret in each namespace with the login for the image registry."),
    ),
    "service_account": (
        _("Service account of jobs"),
        _("In each namespace. Jobs get no token of it. Empty: default."),
    ),
    "allow_root": (
        _("Allow root"),
        _("Containers run as the image's user, with its capabilities. Otherwise each person has a user ID."),
    ),
    "uid_base": (_("First user ID"), _("A person's user ID is this plus the person's number.")),
    "node_labels": (
        _("Node labels"),
        _("Jobs run only on nodes with these labels, one per line: pool: training."),
    ),
    "tolerations": (_("Tolerations"), _("Keys of taints that jobs tolerate, one per line.")),
    "gpu_resource": (_("GPU resource"), _("Name under which nodes offer GPUs: nvidia.com/gpu.")),
    "gpu_label": (_("GPU type label"), _("Label of nodes with their GPU type: nvidia.com/gpu.product.")),
    "gpu_types": (
        _("GPU types"),
        _("A GPU type and its label value, one pair per line: A100: NVIDIA-A100-SXM4-80GB."),
    ),
    "rdma_resource": (
        _("RDMA resource"),
        _("Resource that jobs with RDMA request. Empty: they are refused."),
    ),
    "priority_classes": (
        _("Priority classes"),
        _("A priority from 1 to 9 and its priority class, one pair per line: 9: high."),
    ),
    "local_queue": (
        _("Kueue queue"),
        _("LocalQueue in each namespace for jobs of a Kubeflow kind. Empty: only as a job's label says."),
    ),
    "folders": (
        _("Folders of nodes"),
        _(
            "Folders on the nodes that jobs can mount, and in which workspaces, as JSON: "
            '{"/data": {"workspaces": ["*"], "write": false}}.'
        ),
    ),
    "exports": (_("NFS exports"), _("Exports that jobs can mount, one per line: server:/export.")),
    "checkpoint_class": (
        _("Storage class for checkpoints"),
        _("Each job gets a volume that its attempts share. Empty: jobs have no checkpoint folder."),
    ),
    "checkpoint_gib": (_("Checkpoint volume (GiB)"), _("Size of each job's volume.")),
    "checkpoint_access": (
        _("Checkpoint access"),
        _("ReadWriteOnce only if a volume can't be used on several nodes."),
    ),
    "hdfs": NAMENODES,
    "ports": (_("Port range"), _("First and last port given to jobs: [20000, 29999].")),
    "timeout_s": (_("Request timeout (s)"), _("Maximum time to wait for the API server.")),
}
"""The label and the help text of each setting that an admin may set, in the form's order."""

PROBLEMS: Final[Mapping[str, str]] = {
    "context_alone": _("A context requires a kubeconfig file."),
    "no_export": _("Invalid export “%(value)s”. Enter server:/path."),
    "no_folder": _("%(path)s: enter an absolute path with workspaces and write."),
    "no_image": _("Invalid image name “%(value)s”."),
    "no_label": _("Invalid Kubernetes label or resource name “%(value)s”."),
    "no_name": _("Invalid Kubernetes name “%(value)s”. Lower-case letters, digits and - are allowed."),
    "no_path": _("Invalid path “%(value)s”. Enter an absolute path; letters, digits and ._+@- are allowed."),
    "no_url": _("Enter the address of the API server: https://…."),
    "no_token": _("The API server's address requires a token."),
    "two_connections": _("Enter a kubeconfig file or the API server's address, not both."),
}
"""Sentences of the problems that only these settings have, by code."""
