"""Plans the lattice of discrete noise, and refuses budgets for which there is none."""

from pipelines.config.values import mistake
from pipelines.privacy.discrete_gaussian import FINEST, Budget, lattice_scale


def lattice(budget: Budget, *, sigma: float, draws: int) -> int:
    """Returns `lattice_scale`, from public numbers alone, before anything is entered as spent.

    Args:
        budget: The budget of the release. Its delta pays for the rounding to the lattice.
        sigma: The standard deviation of the noise.
        draws: How many numbers are released.

    Returns:
        The lattice steps per unit.

    Raises:
        UserError: Delta is so small that sums on that lattice would outgrow 64 bits.
    """
    scale = lattice_scale(budget, sigma=sigma, draws=draws)
    if scale > FINEST:
        rule = (
            f"larger: {draws} released numbers would need a lattice finer than 64 bits have room "
            "for"
        )
        raise mistake("privacy.delta", budget.delta, rule)
    return scale
