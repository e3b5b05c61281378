"""The job form: a JobSpec as fields, and the changed fields as a JobSpec again.

The truth is a job file's text.  `reading` shows what it says; `changes` takes what was changed in the
form and says it in the text, where order, comments and unknown keys stay.
"""
