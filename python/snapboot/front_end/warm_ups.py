"""What recipes have done before the freeze, besides imports: work that a training run does once in a process, and that finds itself done
when it is done again. By name, as a recipe's `warm_up` says it; learnt.py tries each in a child first."""


def django_checks():
    """The system checks that are Django's own, which nearly all commands of a project begin with: they parse settings, compile patterns of
    URLs, look up fields of models and libraries of templates. Those of others may keep anything of that they have run."""
    from django.core.checks.registry import registry

    for check in list(registry.registered_checks):
        module = getattr(check, "__module__", None) or ""
        # That one makes a command, which looks for its terminal.
        if module.startswith("django.") and module != "django.core.checks.commands":
            check(app_configs=None, databases=None)


WARM_UPS = {"django.core.checks": django_checks}
