"""Fits `datalens`: a generator taught by the noisy votes of teachers.

generator        the release
student          the generator that learns by votes
plan             noise and steps, from public numbers alone
votes            ballots, their sum and its sensitivity
ensemble         all teachers of a run
teacher_block    some of the teachers in one stacked state
workers          the teachers in several processes
machines         the teachers on several machines
journal          what a killed run needs to go on
"""

from pipelines.synthesis.datalens.generator import (
    IDENTITY,
    KNOWN_FAILURES,
    VERSION,
    fit,
    plan,
    sample,
)

__all__ = ["IDENTITY", "KNOWN_FAILURES", "VERSION", "fit", "plan", "sample"]
