import importlib.util
import pathlib

import pricing
from django.conf import settings
from django.shortcuts import render
from django.template.loader import select_template

from .models import Item

SHOWN = []


def index(request):
    """All that edits change."""
    from . import urls

    extra = importlib.util.find_spec("items.extra") and importlib.import_module("items.extra").TEXT
    shown = {
        "view": SHOWN,
        "settings": settings.SHOWN,
        "fields": [field.name for field in Item._meta.get_fields()],
        "routes": len(urls.urlpatterns),
        "extra": extra,
        "data": (pathlib.Path(settings.BASE_DIR) / "data.txt").read_text(),
        "price": pricing.PRICE,
        "part": select_template(["items/part.html", "items/none.html"]).render(),
    }
    return render(request, "items/index.html", {"shown": shown})
