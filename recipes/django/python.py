"""What commands of a project do once."""

from .recipes import Defaults


def run_checks():
    """The system checks that are Django's own, which nearly all commands of a project begin with: they parse settings, compile patterns of
    URLs, look up fields of models and libraries of templates. Those of others may keep anything of that they have run."""
    from django.core.checks.registry import registry

    for check in list(registry.registered_checks):
        module = getattr(check, "__module__", None) or ""
        # That one makes a command, which looks for its terminal.
        if module.startswith("django.") and module != "django.core.checks.commands":
            check(app_configs=None, databases=None)


class Recipe(Defaults):
    """See Defaults."""

    warm_ups = {"django.core.checks": run_checks}
