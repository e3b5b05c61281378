"""The environment variables that a start command finds, for the list beside it and its completion."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_lazy as _

from jobs.form.fields import Words

VARIABLES: Final[tuple[tuple[str, Words], ...]] = (
    ("MASTER_ADDR", _("address of the first node")),
    ("MASTER_PORT", _("port on the first node, for the nodes to meet at")),
    ("WORLD_SIZE", _("number of nodes")),
    ("RANK", _("number of this node, from 0")),
    ("NPROC_PER_NODE", _("GPUs of a node; 1 without any")),
    ("TF_CONFIG", _("TensorFlow's description of the cluster, for TensorFlow jobs")),
    ("JOB_NAME", _("id of the job")),
    ("CUSTOM_PORTS", _("the ports that were asked for, parted by “;”")),
    ("PAI_JOB_NAME", _("name of the job")),
    ("PAI_USER_NAME", _("whose job it is")),
    ("PAI_CURRENT_TASK_ROLE_NAME", _("this task's role")),
    ("PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX", _("number of this task in its role, from 0")),
    ("PAI_CURRENT_TASK_ROLE_TASK_COUNT", _("number of tasks of this role")),
    ("PAI_CURRENT_TASK_ROLE_GPU_COUNT", _("GPUs of this task")),
    ("PAI_CURRENT_TASK_ROLE_CPU_COUNT", _("CPU cores of this task")),
    ("PAI_CURRENT_TASK_ROLE_MEM_MB", _("memory of this task, in MiB")),
    ("PAI_TASK_ROLE_LIST", _("names of all roles, parted by commas")),
    ("PAI_CONTAINER_HOST_IP", _("address of this task's node")),
    ("PAI_CONTAINER_SSH_PORT", _("port of SSH")),
    ("PAI_WORK_DIR", _("this task's own folder")),
    ("PAI_DATA_DIR", _("where the data is, where the file says it")),
    ("PAI_OUTPUT_DIR", _("where results go, where the file says it")),
    ("PAI_CODE_DIR", _("where the code is, where the file says it")),
    ("CUDA_VISIBLE_DEVICES", _("numbers of the GPUs that are this task's")),
    ("HOME", _("this task's own folder")),
)
"""Each with what it says."""
