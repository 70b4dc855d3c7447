"""Plans the lattice of discrete noise, and refuses budgets for which there is none."""

from collections.abc import Collection

from pipelines.config.values import mistake
from pipelines.privacy.discrete_gaussian import FINEST, Budget, lattice_scale
from pipelines.privacy.noise import WIDEST


def lattice(budget: Budget, *, sigmas: Collection[float], draws: int, coarsest: int = 1) -> int:
    """Returns `lattice_scale`, from public numbers alone, before anything is entered as spent.

    Args:
        budget: The budget of the release. Its delta pays for the rounding to the lattice.
        sigmas: The standard deviations of the noise of all sums.
        draws: How many numbers are released.
        coarsest: Lattice steps per unit, at least.

    Returns:
        The lattice steps per unit.

    Raises:
        UserError: Delta is so small that sums on that lattice would outgrow 64 bits, or epsilon so
            small that the noise would.
    """
    scale = lattice_scale(budget, sigma=min(sigmas), draws=draws)
    if scale > FINEST:
        rule = (
            f"larger: {draws} released numbers would need a lattice finer than 64 bits have room "
            "for"
        )
        raise mistake("privacy.delta", budget.delta, rule)
    scale = max(scale, coarsest)
    if max(sigmas) * scale > WIDEST:
        rule = "larger: 64 bits have no room for the noise of so small a budget"
        raise mistake("clients.epsilon", budget.epsilon, rule)
    return scale
