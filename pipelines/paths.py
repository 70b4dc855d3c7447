"""Tells where each artifact lives.

Two folder names carry the privacy rule. Everything private lies under `data/private` or
`models/private`, and in the experimenter's `reports`. Only `data/synthetic` may leave, and
`models/initial`, which is computed from it alone, or from noisy messages that the clients' ledgers
entered (guard/checks.py).
"""

from pathlib import Path

from pipelines.errors import UserError
from pipelines.privacy import ledger_folder
from pipelines.privacy.ledger_folder import LedgerError

SCRATCH = Path(".scratch")
RAW = Path("raw")
REPORTS = Path("reports")
SCORES = Path("scores")
BASELINES = Path("models/private/baselines")
DP_BASELINES = Path("models/private/dp_baselines")
AUDIT = SCRATCH / "audit"
LEDGERS = ledger_folder.VARIABLE
# stands where the names of other shared models have a generator
NOISY = "noisy"
# of a method, beside its results
COST = "cost.json"
# of the released images that are handed out with a model
POOL = "pool.npz"
# of an export whose generator released a classifier beside its images
CLASSIFIER = "classifier.safetensors"
# beside the results, too; with a dash, which no client's name has
CORRECT = "correct-images.safetensors"


def ledgers() -> Path:
    """Returns the folder of all ledgers.

    Raises:
        UserError: Ledgers in that folder would be deleted with the folder of an experiment
            (`ledger_folder.chosen`).
    """
    try:
        return ledger_folder.chosen()
    except LedgerError as error:
        raise UserError(str(error)) from None


def prepared(dataset: str) -> Path:
    """Returns the private folder of a data set as read, split into train and test."""
    return Path("data/private") / dataset / "prepared"


def shards(dataset: str) -> Path:
    """Returns the private folder of the clients' shards."""
    return Path("data/private") / dataset / "clients"


def generator(dataset: str, client: str, name: str) -> Path:
    """Returns the private folder of a client's fitted generator.

    >>> generator("digits", "c0", "datalens").as_posix()
    'models/private/generators/digits/c0/datalens'

    Args:
        dataset: The data set's name.
        client: The client's name.
        name: The generator's name.
    """
    return Path("models/private/generators") / dataset / client / name


def joint(dataset: str) -> Path:
    """Returns the private folder of the generators that a data set's clients fitted together."""
    return Path("models/private/joint") / dataset


def synthetic(dataset: str, client: str, name: str) -> Path:
    """Returns the folder of what a client hands out: synthetic images above all. It may leave.

    Args:
        dataset: The data set's name.
        client: The client's name.
        name: The generator's name.
    """
    return Path("data/synthetic") / dataset / client / name


def quality(dataset: str, client: str, name: str) -> Path:
    """Returns the private folder with the quality of a client's synthetic images.

    Args:
        dataset: The data set's name.
        client: The client's name.
        name: The generator's name.
    """
    return Path("models/private/quality") / dataset / client / name


def of_method(generator: str, method: str) -> str:
    """Returns the name of a shared model's folders: for PPPFL's model the generator's.

    No generator's name and no method's name has a dash.

    >>> of_method("dp_moments", "pppfl"), of_method("dp_moments", "pooled")
    ('dp_moments', 'dp_moments-pooled')
    """
    return generator if method == "pppfl" else f"{generator}-{method}"


def of_noisy_method(method: str) -> str:
    """Returns the name of the folders of a model that a noisy method trained on records.

    >>> of_noisy_method("dpsgd_head")
    'noisy-dpsgd_head'
    """
    return f"{NOISY}-{method}"


def scores(dataset: str) -> Path:
    """Returns the folder of what DVC shows of a published data set; of others it says nothing."""
    return SCORES / dataset


def initial(dataset: str, name: str) -> Path:
    """Returns the folder of a shared model, which may leave.

    Args:
        dataset: The data set's name.
        name: As `of_method` or `of_noisy_method` gives it.
    """
    return Path("models/initial") / dataset / name


def cost(dataset: str, name: str) -> Path:
    """Returns the private folder with the cost of making the initial model.

    Seconds differ from run to run. They lie here, so that what leaves follows from the seed.
    """
    return Path("models/private/costs") / dataset / name


def personal(dataset: str, name: str) -> Path:
    """Returns the private folder of the models that clients fine-tuned locally."""
    return Path("models/private/personal") / dataset / name


def alone(dataset: str) -> Path:
    """Returns the private folder of the models that clients trained alone."""
    return Path("models/private/alone") / dataset


def baseline(dataset: str, algorithm: str) -> Path:
    """Returns the private folder of a baseline's results."""
    return BASELINES / dataset / algorithm


def about_baselines(dataset: str) -> list[Path]:
    """Returns the private folders that stand among the baselines' also where none is listed."""
    return [folder / dataset / "about" for folder in (BASELINES, DP_BASELINES)]


def dp_baseline(dataset: str, algorithm: str) -> Path:
    """Returns the private folder of the results of noisy federated training."""
    return DP_BASELINES / dataset / algorithm


def new_clients(dataset: str, generator: str) -> Path:
    """Returns the private folder of the results of clients that join later."""
    return Path("models/private/new_clients") / dataset / generator
