"""The error of a ledger that refuses or is damaged."""


class LedgerError(Exception):
    """The file is damaged, a release is refused, or there is no lasting place for a ledger. The text is a sentence."""
