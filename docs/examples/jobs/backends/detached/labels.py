"""Names and explanations of the settings, and sentences of problems that validators raise."""

from jobs.backends.settings import mark as _

LABEL = _("Detached processes")
SETTINGS = {"nice": (_("Niceness"), _("Of jobs' processes: 19 leaves most to others."))}
PROBLEMS: dict[str, str] = {}
