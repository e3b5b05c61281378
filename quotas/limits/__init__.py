"""Limits and idle policies of quotas, for those who change them."""
