"""Harbor tasks in which an agent writes policies, tunes servers and chooses fleets: ``python -m servegym.harbor FOLDER``."""
