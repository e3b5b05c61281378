"""Every setting of the console, a module for each idea.

What a person may change comes from the environment; `manage.py settings_table` lists it in the order of
these imports.
Nothing here imports anything of Django, so that what needs no Django can read it too: beat does.
"""

from console.settings.location import *
from console.settings.framework import *
from console.settings.people import *
from console.settings.signing_in import *
from console.settings.mail import *
from console.settings.browser import *
from console.settings.api import *
from console.settings.workers import *
from console.settings.clusters import *
from console.settings.job_access import *
from console.settings.uploads import *
from console.settings.notifications import *
from console.settings.logs import *
