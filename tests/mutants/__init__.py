"""Lists privacy bugs that are planted one at a time in a copy of the project.

Each must make its named test fail.
"""

from mutants import federation, joint_releases, leaving, ledger, privacy, secure_sums, synthesis
from mutants.mutant import Mutant

MUTANTS: list[Mutant] = [
    *privacy.MUTANTS,
    *ledger.MUTANTS,
    *synthesis.MUTANTS,
    *federation.MUTANTS,
    *leaving.MUTANTS,
    *secure_sums.MUTANTS,
    *joint_releases.MUTANTS,
]
