"""Django's system checks of the settings, and the command `doctor`, which checks before the first start."""
