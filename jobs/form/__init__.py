"""The form: a JobSpec as fields that somebody can fill in, and what they filled in as a JobSpec again.

The truth is a job file's text.  `reading` shows what it says; `changes` takes what was changed in the
form and says it in the text, where order, comments and unknown keys stay.
"""
