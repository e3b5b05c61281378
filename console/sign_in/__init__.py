"""Signing in: by password, directory and provider, with a second factor; on django-allauth."""
