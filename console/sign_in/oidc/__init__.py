"""OIDC by django-allauth, with what it leaves out: nonces, verified ID tokens, back-channel logout."""
