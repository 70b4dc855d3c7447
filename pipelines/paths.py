"""Where each artifact lives. Two folder names carry the privacy rule: everything private lies under
`data/private` or `models/private` (and the experimenter's `reports`); only `data/synthetic` and
`models/initial`, which is computed from it alone, may leave (guard.py)."""

from pathlib import Path

from pipelines.errors import UserError
from pipelines.privacy import ledger_folder
from pipelines.privacy.ledger_folder import LedgerError

SCRATCH = Path(".scratch")
RAW = Path("raw")
REPORTS = Path("reports")
AUDIT = SCRATCH / "audit"
LEDGERS = ledger_folder.VARIABLE
COST = "cost.json"  # of a method, beside its results
CORRECT = "correct-images.safetensors"  # likewise; with a dash, which no client's name has


def ledgers() -> Path:
    """
    Raises:
        UserError: ledgers there would be deleted with the folder of an experiment (ledger_folder.chosen).
    """
    try:
        return ledger_folder.chosen()
    except LedgerError as error:
        raise UserError(str(error)) from None


def prepared(dataset: str) -> Path:
    return Path("data/private") / dataset / "prepared"


def shards(dataset: str) -> Path:
    return Path("data/private") / dataset / "clients"


def generator(dataset: str, client: str, name: str) -> Path:
    return Path("models/private/generators") / dataset / client / name


def synthetic(dataset: str, client: str, name: str) -> Path:
    return Path("data/synthetic") / dataset / client / name


def quality(dataset: str, client: str, name: str) -> Path:
    return Path("models/private/quality") / dataset / client / name


def initial(dataset: str, name: str) -> Path:
    return Path("models/initial") / dataset / name


def cost(dataset: str, name: str) -> Path:
    """Of making the initial model. Seconds differ from run to run: kept here, so that what leaves follows a seed."""
    return Path("models/private/costs") / dataset / name


def personal(dataset: str, name: str) -> Path:
    return Path("models/private/personal") / dataset / name


def baseline(dataset: str, algorithm: str) -> Path:
    return Path("models/private/baselines") / dataset / algorithm


def dp_baseline(dataset: str, algorithm: str) -> Path:
    return Path("models/private/dp_baselines") / dataset / algorithm


def new_clients(dataset: str, generator: str) -> Path:
    return Path("models/private/new_clients") / dataset / generator
