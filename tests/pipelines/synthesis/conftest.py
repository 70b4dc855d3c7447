"""Makes what the tests of generators share."""

import pytest

from pipelines.privacy.discrete_gaussian import Budget
from pipelines.synthesis.base import Space
from pipelines.synthesis.datalens import generator as datalens


@pytest.fixture(params=[1, 3], ids=["grey", "colour"])
def space(request):
    return Space(height=6, width=5, channels=request.param, classes=3)


@pytest.fixture
def planned(datalens_settings):
    """Returns a factory of `datalens` plans that spend epsilon 10 at delta 1e-5."""
    return lambda space, **changes: datalens.plan(
        datalens_settings(**changes), Budget(10.0, 1e-5), space
    )


@pytest.fixture
def as_bytes():
    """Returns a function that joins all arrays of a generator's state, by name."""
    return lambda state: b"".join(state[name].tobytes() for name in sorted(state))
