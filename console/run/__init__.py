"""`make run`: the whole console on one machine, from a checked folder to a page in the browser."""
