"""Nothing that a user writes into a parameter file ends in a traceback, and nothing is accepted that later fails.

In CI: a sample of the mutations in `mutations.py`, the same for one seed; FUZZ_SEED names another. In `make test-slow`:
all of them.
What is accepted is put to `later.py`: each plan and account, and the cheap parts of each stage.
"""

import os
import random
import time

import parameter_files
import pytest
import shipped
from later import everything
from mutations import Mutation, of_content, texts
from project import ROOT

from pipelines import config
from pipelines.config import Params
from pipelines.errors import UserError

SEED = int(os.environ.get("FUZZ_SEED", "1"))
SAMPLE, FILES = 250, 30
AT_MOST = 10.0  # CPU-seconds of a load: a hang is found, on a slow machine as well


def loaded(action, what: str) -> Params | None:
    """Returns what was accepted. A refusal is sentences about a file, and both come soon."""
    began = time.process_time()
    try:
        return action()
    except UserError as error:
        assert all(".yaml" in line and len(line) < 1000 for line in str(error).splitlines()), (
            what,
            str(error),
        )
        return None
    except Exception as error:
        raise AssertionError(
            f"{what} ended in {type(error).__name__}: {error} (FUZZ_SEED={SEED})"
        ) from error
    finally:
        assert time.process_time() - began < AT_MOST, what


def put_to_the_test(mutations: list[Mutation]) -> int:
    """Returns how many were accepted. All of these hold what loading them promised."""
    print(f"FUZZ_SEED={SEED}")
    accepted = 0
    for mutation in mutations:
        params = loaded(lambda mutation=mutation: shipped.load(mutation.make()), mutation.what)
        if params:
            accepted += 1
            try:
                everything(params, *concerned(params, mutation.what))
            except AssertionError as error:
                raise AssertionError(
                    f"{mutation.what} was accepted (FUZZ_SEED={SEED}): {error}"
                ) from error
    return accepted


def concerned(params: Params, what: str) -> tuple[list[str], list[str]]:
    """Returns the data sets and clients that a mutation can have touched."""
    named = [name for name in params.profiles if what.startswith(f"profiles.{name}.")]
    client = [name for name in params.clients if what.startswith(f"clients.{name}.")]
    return named or params.datasets, client or list(params.clients)[-1:]


def sample() -> list[Mutation]:
    return random.Random(SEED).sample(of_content(), SAMPLE)


def written(folder, file: str, text: bytes, what: str) -> None:
    parameter_files.copy_files(ROOT, folder)
    (folder / file).write_bytes(text)
    params = loaded(lambda: config.load(folder / "params.yaml"), what)
    if params:
        everything(params, params.datasets, list(params.clients)[-1:])


def test_a_sample_of_mutations():
    assert put_to_the_test(sample()) > SAMPLE / 50


def test_a_sample_of_files(tmp_path):
    print(f"FUZZ_SEED={SEED}")
    for what, (file, text) in random.Random(SEED).sample(sorted(texts().items()), FILES):
        written(tmp_path, file, text, what)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_all_mutations(part):
    assert put_to_the_test(of_content()[part::8])


@pytest.mark.slow
def test_all_files(tmp_path):
    for what, (file, text) in sorted(texts().items()):
        written(tmp_path, file, text, what)
