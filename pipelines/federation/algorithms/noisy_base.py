"""The contract of a noisy algorithm: what it declares beside the functions of every algorithm."""

from typing import Protocol

from pipelines.config.values import Block
from pipelines.federation.algorithms.base import Algorithm
from pipelines.federation.dp.account import Account
from pipelines.privacy.accounting import Steps
from pipelines.privacy.ledger import Identity


class NoisyAlgorithm(Algorithm, Protocol):
    """An algorithm that trains on private records within each client's budget.

    Attributes:
        VERSION: of the mechanism, in the ledger. Raise it when the same parameters would release
            something else.
        IDENTITY: which of the ledger's parameters tell two releases apart.
    """

    VERSION: int
    IDENTITY: Identity

    def new_account(
        self, epsilon: float, delta: float, settings: Block, before: tuple[Steps, ...] = ()
    ) -> Account:
        """Plans one client's noise within its budget.

        Args:
            epsilon, delta: the client's budget.
            settings: those of the run.
            before: what the run spends ahead of its first step, of the same budget.

        Raises:
            ValueError: `before` leaves nothing of the budget.
        """
