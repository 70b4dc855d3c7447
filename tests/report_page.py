"""Reads a page of the report as a reader sees it."""

import re
from html.parser import HTMLParser


class Page(HTMLParser):
    """Collects every tag with its attributes, and the text a reader sees."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words, self.hidden = [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.hidden = tag in ("style", "script")

    def handle_endtag(self, tag):
        self.hidden = False

    def handle_data(self, data):
        if not self.hidden:
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def outside_folds(text):
    """Returns the mark-up that a reader sees before any fold is opened."""
    shown = text
    while (
        closed := re.sub(r"<details(?:(?!<details).)*?</details>", "", shown, flags=re.DOTALL)
    ) != shown:
        shown = closed
    return shown
