"""Recovery: mends what a kill, a full disk or a crash left torn, and nothing else.

    python -m pipelines.recover      # make recover; make repro begins with it

The ledgers prove that nothing is lost. DVC 3.67.1 rewrites two files in place: `.dvc/tmp/rwlock`
and `dvc.lock`. It fills an output file by file where it takes one back from its cache, and leaves
temporary names beside files that it renames (`dvc_files`). Folders in the making, which hold
private records, and the last line of a ledger are ours (`recovery`). Results that are removed here
come back from DVC's run cache or are made again; releases come back from the ledgers' store.
"""
