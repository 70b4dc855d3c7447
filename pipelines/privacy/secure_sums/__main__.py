"""Prints the public key of a client's signatures, and makes the key where there is none.

    python -m pipelines.privacy.secure_sums clinic_a

Each client runs it on its own machine, and gives the line to all others by a way that the server does
not control. All sides have all lines in `federation.roster` of params.yaml.
"""

import argparse
import re
import sys

from pipelines.privacy.ledger_folder import LedgerError
from pipelines.privacy.secure_sums import signing_key
from pipelines.privacy.secure_sums.refusals import Refusal

# as names of clients in params.yaml
CLIENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_]*")


def main(arguments: list[str] | None = None) -> None:
    """Runs the command.

    Args:
        arguments: The words after the command's name; None for those of this process.
    """
    parser = argparse.ArgumentParser(
        prog="python -m pipelines.privacy.secure_sums",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("client", help="the client's name in params.yaml")
    client = parser.parse_args(arguments).client
    if not CLIENT.fullmatch(client):
        parser.error(f"a client's name has letters, digits and underscores. Got {client!r}.")
    try:
        identity = signing_key.made(client)
    except (Refusal, LedgerError) as error:
        sys.exit(f"Error: {error}")
    except OSError as error:
        sys.exit(f"Error: {error.strerror}: {error.filename}.")
    print(f'{client}: "{identity.public.hex()}"')


if __name__ == "__main__":
    main()
