"""Tells what releases the next `dvc repro` makes, and how many more each client can afford.

`records` reads what would be dealt, `candidates` plans every release as the stages do, `rows` holds
the plan against the ledgers, and `remaining` counts. Nothing is spent and no file is written.
"""
