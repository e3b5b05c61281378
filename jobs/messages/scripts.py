"""Sentences about sbatch scripts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.messages.sentences import mark as _

PROBLEMS: Final[Mapping[str, tuple[str, ...]]] = {
    "ambiguous_option": (_("--%(text)s is ambiguous (%(choices)s). Write the full option name."),),
    "any_dependency": (
        _(
            "--dependency=%(value)s waits for any one of its jobs, but jobs here wait for all of "
            "them. Use commas, or name one job."
        ),
        _("Jobs here wait for all the jobs that they name, not for any one of them."),
    ),
    "array_backwards": (_("“%(part)s” in --array is in descending order. Write the lower index first."),),
    "array_index": (
        _("“%(part)s” in --array has an index above %(most)s, the highest that Slurm supports."),
    ),
    "array_limit": (
        _("“%(part)s” is not a valid limit for --array. Write a number after %%, e.g. --array=%(example)s."),
    ),
    "array_of_components": (_("A heterogeneous job can't be an array; Slurm refuses it too."),),
    "array_part": (
        _(
            "“%(part)s” in --array is neither an index nor a range. Write 3, 0-9 or 0-15:4, "
            "separated by commas."
        ),
    ),
    "array_step": (_("“%(part)s” in --array has a step of 0. Write 1 or more, or omit the step."),),
    "array_too_long": (
        _("--array=%(value)s has more than %(most)s indexes, the limit of a sweep. Submit it in parts."),
    ),
    "no_commands": (_("No command after the options of the script."),),
    "no_interpreter": (
        _("The first line must name an interpreter, e.g. #!/bin/bash; otherwise sbatch refuses the script."),
    ),
    "not_an_option": (_("“%(text)s” is not an option. Options begin with - or --."),),
    "option_value": (
        _("--%(key)s can't be “%(value)s”. Example: --%(key)s=%(example)s."),
        _("This value can't be read."),
    ),
    "unknown_letter": (_("Unknown option -%(text)s."),),
    "unmatched_quote": (_("The quote %(quote)s is not closed on its line."),),
    "value_missing": (_("--%(key)s needs a value on the same line."),),
    "value_not_allowed": (_("--%(key)s takes no value."),),
}

NOTES: Final[Mapping[str, tuple[str, ...]]] = {
    "abbreviated_option": (_("--%(key)s was read as --%(meant)s."),),
    "array": (
        _("--array=%(value)s makes this a sweep. Jobs: %(count)s, at most %(at_once)s at a time."),
        _("--array=%(value)s makes this a sweep. Jobs: %(count)s, all at the same time."),
    ),
    "dos_line_ends": (
        _("The file has Windows line endings, which sbatch refuses; read as normal line endings."),
    ),
    "job_unnamed": (_("The job has no name; named %(value)s, as Slurm may do."),),
    "needs_pyxis": (_("The image is run by Pyxis, a plugin required on the cluster."),),
    "needs_slurm": (
        _("The script uses %(names)s, which is available only in Slurm."),
        _("The script uses features available only in Slurm."),
    ),
    "no_memory": (_("No memory requested: Slurm uses the partition's default; %(value)s MiB used here."),),
    "one_node_taken": (
        _("No node count for %(value)s tasks. Slurm may spread them; counted as on one node here."),
        _("No node count; counted as on one node."),
    ),
    "option_repeats": (_("Duplicate --%(key)s. The last one applies, as in Slurm."),),
    "other_name": (_("--%(key)s is an alias of --%(meant)s."),),
    "pbs_lines": (
        _("Lines that begin with %(mark)s were ignored, although sbatch may read them. Use #SBATCH instead."),
    ),
    "range_taken": (_("--%(key)s=%(value)s is a range; its minimum, %(taken)s, is used."),),
    "script_runs_once": (
        _("Slurm runs this script once, on the first node; only its srun calls run on the others."),
    ),
    "secret_in_script": (
        _(
            "The script sets %(name)s, visible to everyone who can read the file. To keep it "
            "secret, use a variable of the job with a name ending in _PASSWORD or _TOKEN."
        ),
    ),
    "slurm_mark": (_("Lines that begin with %(mark)s were read, but sbatch requires %(right)s."),),
    "value_cut": (_("In “%(value)s”, # starts a comment. Put the value in quotes to keep the rest."),),
    "whole_node": (_("--%(key)s requests a whole node; only the cluster knows its size."),),
}
