"""The same sentences in Chinese."""

from marlab.quickstart.verdicts import SENTENCES
from marlab.quickstart.verdicts_zh import SENTENCES_ZH
from tests.lab.sentences import check_translation


def test_the_values_are_the_same_in_chinese() -> None:
    assert SENTENCES["zh"] is SENTENCES_ZH
    check_translation(SENTENCES["en"], SENTENCES_ZH)
