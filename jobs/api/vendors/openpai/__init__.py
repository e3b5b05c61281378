"""OpenPAI's REST server, versions 1 and 2."""
