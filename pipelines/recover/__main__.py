"""Mends the checkout in the working directory, and prints what was torn and what ledgers hold."""

from pipelines.errors import told_in_a_sentence
from pipelines.recover import recovery

if __name__ == "__main__":
    with told_in_a_sentence():
        mended = recovery.recover()
        if mended:
            print(f"Recovered: {'; '.join(mended)}. {recovery.proof()}")
        else:
            print(f"Nothing to recover. {recovery.proof()}")
