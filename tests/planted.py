"""Holds functions that tests send to other processes, which import them by name.

Those processes know no name of a test file.
"""


def failing(gradients, generator):
    """Fails to cast a ballot."""
    raise ZeroDivisionError("planted")
