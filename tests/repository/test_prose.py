"""Documents for users are easy to read: their sentences are short, and so is each page of limits."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMITS = sorted((ROOT / "docs/limits").glob("*.md"))
USERS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *LIMITS]
# What is no prose: code, HTML, headings, rows of tables.
ASIDE = re.compile(r"^```[\s\S]*?^```$|<!--[^>]*-->|^#+ .*$|^ *\|.*$|^ *<.*$|^    .*$", re.MULTILINE)
WORDS_OF_A_SENTENCE = 18
WORDS_OF_A_PAGE = 1200
WORDS_OF_ALL_PAGES = 4500
SENTENCES_OF_A_LIMIT = 4
WORDS_OF_A_LEAD = range(2, 6)
# A paragraph with a bold lead.
LIMIT = re.compile(r"^\*\*([^*]+?)\.?\*\*(.+?)(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)


def prose(text: str) -> str:
    """The running text of a document, with one word for each piece of code and without the targets of links."""
    text = ASIDE.sub("\n\n", text)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return re.sub(r"`[^`]+`", "code", text)


def sentences(text: str) -> list[str]:
    """The sentences of a document; a paragraph or an item of a list ends one, too."""
    paragraphs = re.split(r"\n\s*\n|^ *(?:[-*]|\d+\.) ", prose(text), flags=re.MULTILINE)
    parts = [part for paragraph in paragraphs for part in re.split(r"(?<=[.!?])[*_)\"]*\s+", paragraph)]
    return [part.strip() for part in parts if re.search(r"\w", part)]


def words(text: str) -> int:
    return sum(1 for word in text.split() if re.search(r"\w", word))


def average(text: str) -> float:
    """Words to the sentence."""
    found = sentences(text)
    return sum(words(sentence) for sentence in found) / len(found)


@pytest.mark.parametrize("document", USERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_sentences_are_short(document):
    assert average(document.read_text()) < WORDS_OF_A_SENTENCE


@pytest.mark.parametrize("page", LIMITS, ids=lambda path: path.name)
def test_limits_are_short(page):
    text = page.read_text()
    assert words(prose(text)) < WORDS_OF_A_PAGE
    for lead, limit in LIMIT.findall(prose(text)):
        assert words(lead) in WORDS_OF_A_LEAD and len(sentences(limit)) <= SENTENCES_OF_A_LIMIT, lead


def test_limits_are_few():
    assert len(LIMITS) > 4
    assert sum(words(prose(page.read_text())) for page in LIMITS) < WORDS_OF_ALL_PAGES


def test_what_is_no_prose_does_not_count():
    text = "# A heading\n\nOne `two three`.\n```sh\nfour. five.\n```\n| six. | seven. |\n"
    text += "- Eight [nine](ten.md).\n- Eleven. **Twelve.** Thirteen\n"
    assert sentences(text) == ["One code.", "Eight [nine].", "Eleven.", "**Twelve.", "Thirteen"]
    limits = "**One two.** Three. Four.\n\n**Five six**: seven.\n"
    assert LIMIT.findall(limits) == [("One two", " Three. Four."), ("Five six", ": seven.\n")]
    assert words("a - `b` (c)") == 3 and average("One two. Three four five six.") == 3
