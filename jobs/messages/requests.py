"""Sentences about the vendors' requests: PAI-DLC's CreateJob, its parameter files, AIHC's jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.messages.sentences import mark as _

PROBLEMS: Final[Mapping[str, tuple[str, ...]]] = {
    "exclusive": (_("%(key)s and %(other)s are mutually exclusive. Remove one of them."),),
    "no_job_to_wait_for": (
        _("Job %(name)s not found, or no permission. Use a job ID, or user~name for one of your own jobs."),
    ),
    "never_succeeded": (_("%(name)s has already ended (%(state)s) and can't succeed any more."),),
    "never_failed": (_("%(name)s has already ended (%(state)s) and can't fail any more."),),
    "array_is_sweep": (
        _(
            "This script is a job array (%(count)s jobs, at most %(at_once)s at a time), but a "
            "single job was requested. Use POST /api/console/v1/sweeps with the same file."
        ),
        _("This script is a job array. Use POST /api/console/v1/sweeps with the same file."),
    ),
    "sweep_of_array": (
        _("The script already defines its jobs with --array. Use parameters or an array, not both."),
    ),
    "sweep_grid_or_list": (_("Use a grid or a list for the parameter values, not both."),),
    "sweep_without_parameters": (_("A sweep needs a parameter with at least one value."),),
    "sweep_too_large": (
        _("The jobs of the sweep exceed %(most)s characters in total. Submit the sweep in parts."),
    ),
    "sweep_too_many": (_("Too many jobs: a sweep can have at most %(most)s."),),
    "sweep_wrong_range": (
        _("%(name)s has no valid range: the lower bound comes first, log_uniform needs bounds above 0."),
    ),
    "sweep_no_such_field": (_("Unknown field %(name)s, and no command or variable contains {%(name)s}."),),
    "sweep_wrong_value": (
        _("%(name)s can't be “%(value)s”."),
        _("Not a valid value for a job."),
    ),
    "not_possible": (_("%(key)s conflicts with another setting in the file."),),
    "not_a_choice": (
        _("%(key)s “%(value)s” is not one of %(choices)s."),
        _("“%(value)s” is not an allowed value."),
    ),
    "not_a_port": (_("“%(value)s” is not a port. Ports are numbers from 1 to 65535."),),
    "not_a_period": (
        _("%(key)s “%(value)s” is not a valid duration. Enter a number and m, h or d, e.g. 30m or 1d."),
    ),
    "not_an_amount": (_("%(key)s “%(value)s” is not a valid amount. Enter a number and a unit, e.g. 16Gi."),),
    "role_twice": (_("Duplicate role %(name)s."),),
    "unit_missing": (_("%(key)s “%(value)s” has no unit. Example: 16Gi (16 GiB)."),),
}

NOTES: Final[Mapping[str, tuple[str, ...]]] = {
    "amounts_unknown": (
        _("Resources of %(value)s unknown (%(unknown)s); minimum used."),
        _("Resources of %(value)s unknown; minimum used."),
    ),
    "blank_to_fill": (_("%(key)s still contains the placeholder from the manual; treated as empty."),),
    "completion_applied": (
        _("A %(job_type)s succeeds when %(count)s of role %(role)s have succeeded."),
        _("A %(job_type)s ends when its role %(role)s ends."),
        _("Completion policy derived from the job type."),
    ),
    "condition_unmet": (
        _("%(key)s has conditions that are not met by this job: %(lacking)s."),
        _("%(key)s has conditions that are not met by this job."),
    ),
    "exclusive_options": (_("%(source)s does not allow %(key)s together with %(other)s."),),
    "master_port_listed": (
        _("%(key)s “%(value)s” includes port 23456, which is used by the master. Remove it."),
    ),
    "not_a_port_list": (
        _(
            "%(key)s “%(value)s” is not a valid list of ports. Separate ports with semicolons, "
            "e.g. 10000;10001-10010."
        ),
    ),
    "not_a_port_number": (
        _("%(key)s “%(value)s” is not a valid number of ports. Enter a whole number up to %(most)s."),
    ),
    "flag_from_text": (_("%(key)s is a string; read as %(taken)s."),),
    "gpu_unnamed": (_("%(value)s does not specify a GPU type; any type can be used."),),
    "job_type_guessed": (_("Job type detected from the file: %(job_type)s."),),
    "joined_lines": (_("All parameters were on one line; they were split."),),
    "limit_without_strategy": (_("The bid applies only with %(key)s; ignored."),),
    "list_from_text": (_("%(key)s is a string; read as a list."),),
    "no_amounts": (_("No resources given; minimum used."),),
    "no_image": (_("No image (%(key)s is missing): runs directly on the node."),),
    "no_limit_here": (_("No time limit: %(target)s ends the job after %(minutes)s minutes by default."),),
    "object_from_list": (_("%(key)s is a list of pairs; read as an object."),),
    "object_from_text": (_("%(key)s is a string of pairs; read as an object."),),
    "option_elsewhere": (_("%(key)s applies only to %(needs)s."),),
    "other_case": (_("%(key)s “%(value)s” was read as %(meant)s."),),
    "over_public_limit": (
        _("%(key)s: %(value)s requested; %(target)s public resources allow %(most)s per user."),
    ),
    "over_vendor_limit": (_("%(key)s is %(value)s; %(target)s allows at most %(most)s."),),
    "rdma_shared_memory": (_("RDMA adds %(mib)s MiB of shared memory (%(source)s)."),),
    "registries_differ": (_("The roles have different registry logins; the first one is used for all."),),
    "rounded_down": (_("%(key)s %(value)s was rounded down to %(taken)s."),),
    "rounded_up": (
        _("%(key)s %(value)s was rounded up to %(taken)s %(unit)s."),
        _("%(key)s %(value)s was rounded up to %(taken)s."),
    ),
    "switched_off": (_("%(key)s is off; the specified nodes were ignored."),),
    "two_commands": (
        _("Role %(role)s has its own command in addition to the job's; the job's command is used."),
    ),
    "two_sizes": (_("Both a size and amounts are given; %(taken)s is used."),),
    "unknown_resource": (_("Unknown resource %(value)s ignored (kept in the file)."),),
    "unknown_word": (
        _("Unknown %(key)s “%(value)s” ignored. Did you mean %(meant)s?"),
        _("Unknown %(key)s “%(value)s” ignored."),
    ),
    "value_as_text": (_("%(key)s is not a string; read as “%(value)s”."),),
}
