"""One file per DVC stage, run as `python -m stages.NAME` from the project's root."""

import os

# Read when torch is imported, hence set before any stage's own imports: small networks only lose by
# more threads.
os.environ.setdefault("OMP_NUM_THREADS", "1")
