"""Has clients on machines of their own make a joint release: the submitter's command.

    FEDLENS_KIT=path/to/kit/admin@fedlens.org python -m pipelines.joint --dataset NAME

The clients' ledgers enter it, and each client stores the generator. No record, vector or generator
comes to the submitter.
"""

import argparse

from pipelines import config
from pipelines.config.generators import JOINT
from pipelines.errors import told_in_a_sentence
from pipelines.federation.engine import carrier
from pipelines.joint import joint_run
from pipelines.reporting.formatting import amount
from pipelines.synthesis import release


def main(arguments: list[str] | None = None) -> None:
    """Runs the command.

    Args:
        arguments: The words after the command's name; None for those of this process.
    """
    parser = argparse.ArgumentParser(
        prog="python -m pipelines.joint",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--dataset", required=True)
    parser.add_argument("--generator", default=JOINT[0], choices=JOINT)
    options = parser.parse_args(arguments)
    with told_in_a_sentence():
        _run(options.dataset, options.generator)


def _run(dataset: str, generator: str) -> None:
    """Submits a joint release, waits for its end, and says what it came to.

    Args:
        dataset: The data set's name.
        generator: The generator's name.

    Raises:
        UserError: The parameters know no such release, or it failed.
    """
    params = config.load()
    run = joint_run.named(params, {"dataset": dataset, "generator": generator})
    planned = run.planned(params)
    release.announce(planned.plan, f"{dataset}/{generator}", generators=1)
    flare = carrier()
    history = flare.jobs.history(
        flare.run_elsewhere(run.carried(params), run.names, run.terms(params))
    )
    lost = history["lost"]
    members = ", ".join(client for client in planned.clients if client not in lost)
    print(
        f"{dataset}/{generator}: {members} made it together in {history['seconds']:.0f} s; up from "
        f"all of them {amount(history['bytes_up'])}, down {amount(history['bytes_down'])}. "
        f"Each of them goes on with `dvc repro --force joint_release@{dataset}`."
    )
    for client, why in lost.items():
        print(
            f"{client} has no generator, because it dropped out ({why}). Its ledger says whether it "
            "has paid."
        )


if __name__ == "__main__":
    main()
