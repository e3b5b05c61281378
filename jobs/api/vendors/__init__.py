"""The APIs of other services, so that their own clients can be pointed here.

Each is a table of operations over the same commands as the pages and the native API.
"""
