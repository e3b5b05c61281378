"""Hypothesis on machines where other things run too: no example fails for being slow."""

from hypothesis import HealthCheck, settings

settings.register_profile("console", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("long", settings.get_profile("console"), max_examples=3000)
settings.load_profile("console")
