"""Sentences about the vendors' requests: PAI-DLC's CreateJob, its parameter files, AIHC's jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.messages.sentences import mark as _

PROBLEMS: Final[Mapping[str, tuple[str, ...]]] = {
    "exclusive": (_("%(key)s and %(other)s exclude each other; keep one of them."),),
    "no_job_to_wait_for": (
        _("There is no job %(name)s that you may see; name one by its id, or one of yours as user~name."),
    ),
    "never_succeeded": (_("%(name)s has ended already (%(state)s), so it will never succeed."),),
    "never_failed": (_("%(name)s has ended already (%(state)s), so it will never fail."),),
    "array_is_sweep": (
        _(
            "This script is an array of jobs, %(count)s in all, at most %(at_once)s of them at a time; one "
            "job was asked for. POST /api/console/v1/sweeps takes the same file."
        ),
        _("This script is an array of jobs; POST /api/console/v1/sweeps takes the same file."),
    ),
    "sweep_of_array": (
        _("The script's own --array says which jobs there are: give parameters or an array, not both."),
    ),
    "sweep_grid_or_list": (_("Give the values of the parameters as a grid or as a list, not both."),),
    "sweep_without_parameters": (_("A sweep needs a parameter with at least one value."),),
    "sweep_too_large": (
        _("All jobs of the sweep together come to more than %(most)s characters: submit it in parts."),
    ),
    "sweep_too_many": (_("These are more than %(most)s; a sweep takes no more than that."),),
    "sweep_no_such_field": (
        _("The job has no field %(name)s, and {%(name)s} stands in no command or variable."),
    ),
    "sweep_wrong_value": (
        _("%(name)s can't be “%(value)s”."),
        _("A job can't have this value."),
    ),
    "not_possible": (_("%(key)s and what the file says elsewhere exclude each other."),),
    "not_a_choice": (
        _("%(key)s “%(value)s” is not one of %(choices)s."),
        _("“%(value)s” is not one of the values that are allowed here."),
    ),
    "not_a_port": (_("“%(value)s” is no port; ports are numbers from 1 to 65535."),),
    "not_an_amount": (_("%(key)s “%(value)s” is no amount: write a number and a unit, as in 16Gi."),),
    "role_twice": (_("The role %(name)s is there twice; give each role once."),),
    "unit_missing": (_("%(key)s “%(value)s” has no unit; 16Gi is sixteen gibibytes."),),
}

NOTES: Final[Mapping[str, tuple[str, ...]]] = {
    "amounts_unknown": (
        _("What %(value)s holds is not known here (%(unknown)s); the job asks for the least instead."),
        _("What %(value)s holds is not known here; the job asks for the least instead."),
    ),
    "blank_to_fill": (_("%(key)s still has the placeholder of the manual; it was taken as empty."),),
    "completion_applied": (
        _("A %(job_type)s succeeds once %(count)s of the role %(role)s succeeded."),
        _("A %(job_type)s ends as its role %(role)s ends."),
        _("When the job has ended was worked out from its type."),
    ),
    "condition_unmet": (
        _("%(key)s has conditions that this job does not meet: %(lacking)s."),
        _("%(key)s has conditions that this job does not meet."),
    ),
    "exclusive_options": (_("%(source)s does not allow %(key)s beside %(other)s."),),
    "master_port_listed": (
        _("%(key)s “%(value)s” has the port 23456, which the master listens on: leave it out."),
    ),
    "not_a_port_list": (
        _(
            "%(key)s “%(value)s” is no list of ports: write them with semicolons between, as in "
            "10000;10001-10010."
        ),
    ),
    "not_a_port_number": (
        _("%(key)s “%(value)s” is no number of ports: write a whole number up to %(most)s."),
    ),
    "flag_from_text": (_("%(key)s is a text; it was read as %(taken)s."),),
    "gpu_unnamed": (_("%(value)s names no type of GPU; any type will do."),),
    "job_type_guessed": (_("The kind of job was worked out from the file: %(job_type)s."),),
    "joined_lines": (_("Everything stood on one line; it was read as one parameter each."),),
    "limit_without_strategy": (_("The bid counts only with %(key)s; it was ignored."),),
    "list_from_text": (_("%(key)s is a text; it was read as a list."),),
    "no_amounts": (_("No resources are named; the job asks for the least."),),
    "no_image": (_("%(key)s is missing; the job runs only where no image is needed."),),
    "no_limit_here": (
        _("The job has no time limit; %(target)s ends it after %(minutes)s minutes unless one is given."),
    ),
    "object_from_list": (_("%(key)s is a list of pairs; it was read as an object."),),
    "object_from_text": (_("%(key)s is a text of pairs; it was read as an object."),),
    "option_elsewhere": (_("%(key)s means something for a %(needs)s only."),),
    "other_case": (_("%(key)s “%(value)s” was read as %(meant)s."),),
    "over_public_limit": (
        _("%(key)s is %(value)s; public resources of %(target)s end at %(most)s for each person."),
    ),
    "over_vendor_limit": (_("%(key)s is %(value)s; %(target)s allows at most %(most)s."),),
    "rdma_shared_memory": (_("With RDMA, %(mib)s MiB of shared memory are added, as on %(source)s."),),
    "registries_differ": (_("The roles have different registry logins; the first one is used for all."),),
    "rounded_down": (_("%(key)s %(value)s was rounded down to %(taken)s."),),
    "rounded_up": (
        _("%(key)s %(value)s was rounded up to %(taken)s %(unit)s."),
        _("%(key)s %(value)s was rounded up to %(taken)s."),
    ),
    "switched_off": (_("%(key)s is off; the nodes that are named were ignored."),),
    "two_commands": (_("The role %(role)s has a command of its own beside the job's; the job's was taken."),),
    "two_sizes": (_("A size and amounts are both given; %(taken)s was taken."),),
    "unknown_resource": (_("The resource %(value)s is not known and was ignored. It stays in the file."),),
    "unknown_word": (
        _("%(key)s “%(value)s” is not known; did you mean %(meant)s? It was ignored."),
        _("%(key)s “%(value)s” is not known and was ignored."),
    ),
    "value_as_text": (_("%(key)s is no text; it was taken as “%(value)s”."),),
}
