"""Where a job process finds what is its own, by environment variable: never by a parameter, which would bring places
of one machine into dvc.lock, and never by a message."""

HOME = "FEDLENS_HOME"  # the checkout, or working folder, of the client or server
KIT = "FEDLENS_KIT"  # the start-up kit of whoever submits, in `remote` mode

# in a job: its properties, and what its server leaves
RUN, TERMS = "run", "terms"
MODELS, HISTORY, FAILED = "models.safetensors", "history.json", "failed.txt"
