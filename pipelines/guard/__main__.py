"""Prints each way in which something private could leave, and exits with 1 if there is any."""

import sys

from pipelines.errors import told_in_a_sentence
from pipelines.guard import checks

if __name__ == "__main__":
    with told_in_a_sentence():
        sentences = checks.problems()
    print("\n".join(sentences) or "Nothing private can be pushed.")
    sys.exit(bool(sentences))
