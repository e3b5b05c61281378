"""The New job page: the form, the editor, drafts and the panel beside them."""
