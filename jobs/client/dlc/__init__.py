"""`dlc`: the commands of PAI-DLC's own command line, for a console or for PAI-DLC itself.

Requests are signed with an access key.  What it prints has the words of the vendor's program, in English,
since scripts read it.
"""
