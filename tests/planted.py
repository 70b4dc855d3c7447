"""What tests send to other processes, which import it by name: a test file has none that they know."""


def failing(gradients, generator):
    """A ballot that cannot be cast."""
    raise ZeroDivisionError("planted")
