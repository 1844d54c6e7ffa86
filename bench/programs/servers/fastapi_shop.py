"""A FastAPI application: ASGI `app`."""

import os

from fastapi import FastAPI
from pydantic import BaseModel

app = FastAPI()


class Item(BaseModel):
    """What the front page answers."""

    name: str
    price: float


@app.get("/")
async def index() -> Item:
    return Item(name=f"hello {os.environ.get('GREETING', 'nobody')}", price=1)
