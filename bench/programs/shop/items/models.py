from django.db import models


class Item(models.Model):
    """An item for sale. Edits append fields."""

    name = models.CharField(max_length=50)
