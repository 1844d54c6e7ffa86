"""Models with fields of several kinds, and one instance read from JSON."""

import datetime
import enum

from pydantic import BaseModel, Field


class Kind(enum.Enum):
    BOOK = "book"
    FILM = "film"


class Person(BaseModel):
    name: str = Field(min_length=1)
    born: datetime.date | None = None


class Work(BaseModel):
    title: str
    kind: Kind
    authors: list[Person]
    year: int = Field(ge=0)
    tags: dict[str, set[str]] = {}


class Library(BaseModel):
    name: str
    works: list[Work] = []


EMMA = '{"title": "Emma", "kind": "book", "year": 1815, "authors": [{"name": "Jane Austen", "born": "1775-12-16"}]}'
print(Library(name="small", works=[Work.model_validate_json(EMMA)]).model_dump_json())
