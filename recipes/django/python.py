"""What commands of a project do once; connections to databases, which connect again when they are used."""

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
    pools = ("django.db.backends.base.base:BaseDatabaseWrapper",)

    def close_idle(self, pools):
        """Leaves those in a transaction. Those of SQLite in memory do not close themselves, and are in the image."""
        for database in pools:
            if database.connection is not None and database.autocommit and not database.in_atomic_block:
                database.inc_thread_sharing()
                database.close()
                database.dec_thread_sharing()
            if hasattr(database, "close_pool"):
                database.close_pool()
