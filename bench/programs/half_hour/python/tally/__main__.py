"""Counts words of pages: `python -m tally`."""

import asyncio
import collections
import json
import sys

import bs4
import requests.models


async def words_of(page):
    return bs4.BeautifulSoup(page, "html.parser").get_text().split()


async def main():
    pages = ["<p>one two</p>", "<p>two <b>three</b></p>"]
    lists = await asyncio.gather(*map(words_of, pages))
    counted = collections.Counter(word for words in lists for word in words)
    print(json.dumps(counted), requests.models.Response().status_code, sys.argv[1:])


asyncio.run(main())
