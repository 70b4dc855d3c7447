"""Checks params.yaml: one sentence per mistake, and exit 1.

python -m pipelines.config
"""

from pipelines.config.params import load, summary
from pipelines.errors import told_in_a_sentence

if __name__ == "__main__":
    with told_in_a_sentence():
        print(summary(load()))
