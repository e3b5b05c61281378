"""Sentences about sbatch scripts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.messages.sentences import mark as _

PROBLEMS: Final[Mapping[str, tuple[str, ...]]] = {
    "ambiguous_option": (_("--%(text)s may be %(choices)s: write it out."),),
    "any_dependency": (
        _(
            "--dependency=%(value)s waits for any one of its jobs; a job here waits for all of them: write "
            "commas, or name one job."
        ),
        _("A job here waits for all the jobs that it names, never for any one of them."),
    ),
    "array_backwards": (_("“%(part)s” in --array goes backwards: write the lower index first."),),
    "array_index": (_("“%(part)s” in --array has an index above %(most)s, the highest that Slurm knows."),),
    "array_limit": (
        _("“%(part)s” is no limit for --array: a number follows the %%, as in --array=%(example)s."),
    ),
    "array_of_components": (_("A heterogeneous job can't be an array; Slurm refuses it too."),),
    "array_part": (
        _(
            "“%(part)s” in --array is neither an index nor a range: write 3, 0-9 or 0-15:4, with commas "
            "between."
        ),
    ),
    "array_step": (_("“%(part)s” in --array has a step of 0: write 1 or more, or leave the step out."),),
    "array_too_long": (
        _("--array=%(value)s has more than %(most)s indexes; a sweep takes no more: submit it in parts."),
    ),
    "no_commands": (_("No command follows the options of the script."),),
    "no_interpreter": (_("The first line must name a program, as in #!/bin/bash; sbatch refuses others."),),
    "not_an_option": (_("“%(text)s” is no option: options begin with - or --."),),
    "option_value": (
        _("--%(key)s can't be “%(value)s”; write it as in --%(key)s=%(example)s."),
        _("This value can't be read."),
    ),
    "unknown_letter": (_("There is no option -%(text)s."),),
    "unmatched_quote": (_("The quote %(quote)s has no end on its line."),),
    "value_missing": (_("--%(key)s needs a value on the same line."),),
    "value_not_allowed": (_("--%(key)s takes no value."),),
}

NOTES: Final[Mapping[str, tuple[str, ...]]] = {
    "abbreviated_option": (_("--%(key)s was read as --%(meant)s."),),
    "array": (
        _("--array=%(value)s makes this a sweep. Jobs: %(count)s, at most %(at_once)s of them at a time."),
        _("--array=%(value)s makes this a sweep. Jobs: %(count)s, all of them at a time."),
    ),
    "dos_line_ends": (
        _("The lines end as on Windows, which sbatch refuses; they were read as if they did not."),
    ),
    "job_unnamed": (_("The job has no name; it was called %(value)s, as Slurm may do."),),
    "needs_pyxis": (_("The image is run by Pyxis, a plugin that the cluster must have."),),
    "needs_slurm": (
        _("The script uses %(names)s, which only Slurm has."),
        _("The script uses what only Slurm has."),
    ),
    "no_memory": (
        _("No memory is asked for: Slurm gives what its partition says; %(value)s MiB were taken here."),
    ),
    "one_node_taken": (
        _(
            "Nodes are not told for %(value)s tasks, and Slurm may spread them; they were counted as on one "
            "node."
        ),
        _("Nodes are not told; everything was counted as on one node."),
    ),
    "option_repeats": (_("--%(key)s is there more than once; the last one counts, as in Slurm."),),
    "other_name": (_("--%(key)s is another name of --%(meant)s."),),
    "pbs_lines": (
        _("Lines that begin with %(mark)s were ignored, though sbatch may read them: use #SBATCH for those."),
    ),
    "range_taken": (_("--%(key)s=%(value)s is a range; its least, %(taken)s, was taken."),),
    "script_runs_once": (
        _("Slurm runs this script once, on the first node; only its srun calls run on the others."),
    ),
    "secret_in_script": (
        _(
            "The script sets %(name)s, which everybody reads who may read the file; a variable of the job "
            "whose name ends in _PASSWORD or _TOKEN is kept secret."
        ),
    ),
    "slurm_mark": (_("Lines that begin with %(mark)s are read, but sbatch asks for %(right)s."),),
    "value_cut": (_("In “%(value)s” a # began a comment: put the value in quotes to keep what follows."),),
    "whole_node": (_("--%(key)s asks for a whole node; how much that is, only the cluster knows."),),
}
