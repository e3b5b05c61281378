"""Job templates: a job file that works as it stands, and the questions whose answers change it.

A template is data.  Its text is a whole job file in one dialect; each parameter says which paths of the
JobSpec its answer fills.  Nothing is ever pasted into a text: the file is read, changed as a JobSpec, and
written back by its dialect, so that no answer can become anything but the value of its own field.
"""

from jobs.jobtemplates.answers import Answers, fill
from jobs.jobtemplates.constraints import Constraint
from jobs.jobtemplates.shipped import SHIPPED
from jobs.jobtemplates.template import JobTemplate, Kind, Parameter, load

__all__ = ["SHIPPED", "Answers", "Constraint", "JobTemplate", "Kind", "Parameter", "fill", "load"]
