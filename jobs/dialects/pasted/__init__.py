"""Texts that hold a job file without being one: a manual's request, a program, a page, a container's command.

Nothing is ever executed, sent or fetched to read them.
"""
