"""The guard: fails if anything private, or unknown to the ledgers, could reach a DVC remote or Git.

    python -m pipelines.guard        # exit 1 and a line per problem

`checks` holds the list of what may leave, and asks all others. `uploads` looks into the files that
`dvc push` would upload. `provenance` holds their cards against the ledgers. `keys` finds private
keys, and `repository` asks Git what it would take.
"""
