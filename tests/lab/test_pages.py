"""Words for pages: the same in every language, and targets that are there."""

from marlab.lab import pages
from tests.lab.notebook.tables import check_tables


def test_the_tables_are_whole() -> None:
    check_tables(pages)
