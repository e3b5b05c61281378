"""An attempt as a batch script."""
