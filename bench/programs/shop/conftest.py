import pytest


@pytest.fixture
def page():
    """The page that edits change."""
    from django.test import Client

    return Client().get("/", HTTP_HOST="localhost").content.decode()
