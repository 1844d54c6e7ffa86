from django.core.management.base import BaseCommand
from django.test import Client


class Command(BaseCommand):
    """Prints the response to a request."""

    def handle(self, *args, **options):
        self.stdout.write(Client().get("/", HTTP_HOST="localhost").content.decode())
