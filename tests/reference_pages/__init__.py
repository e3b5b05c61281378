"""The reference pages: settings, fields of the form, the dialects and the backends, made from the code."""
