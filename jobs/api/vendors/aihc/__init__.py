"""Baidu AIHC: version 2 as the SDK calls it (`/?action=…`), version 1 as the command line does."""
