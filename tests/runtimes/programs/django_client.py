"""Django: its checks, migrations into a database in memory, the admin's pages through the test client. Runs in a new project."""

import os
import re
import sys

sys.path.insert(0, os.getcwd())
os.environ["DJANGO_SETTINGS_MODULE"] = "skel.settings"

import django  # noqa: E402

django.setup()

from django.conf import settings  # noqa: E402
from django.contrib.auth.models import User  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.test import Client  # noqa: E402
from django.test.utils import setup_test_environment  # noqa: E402


def show(response):
    body = re.sub(r'(csrfmiddlewaretoken" value=")\w+', r"\1TOKEN", response.content.decode())
    headers = {name: value for name, value in response.headers.items() if name != "Expires"}
    print(response.status_code, headers, body)


settings.DATABASES["default"]["NAME"] = ":memory:"
connection.settings_dict["NAME"] = ":memory:"
setup_test_environment()
call_command("check", stdout=sys.stdout)
call_command("migrate", verbosity=0)
User.objects.create_superuser("someone", password="secret")
client = Client()
show(client.get("/admin/login/"))
show(client.get("/absent"))
print(client.login(username="someone", password="secret"), User.objects.filter(is_staff=True).count())
show(client.get("/admin/"))
print(os.readlink("/proc/self/exe"))
