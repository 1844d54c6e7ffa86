"""What a start that is noted must hide from the program."""

# Ends with status 1 where the program can see that its start is noted, or how its archive was switched on.
UNSEEN = {
    "python": """
import json, os, sys, textwrap, traceback
assert not [name for name in os.environ if name.startswith("SNAPBOOT_EXPLAIN") or name == "PYTHONPATH"], os.environ
assert not [path for path in sys.path if "explain" in path or "/snapboot/archive/" in path], sys.path
assert "snapboot" not in str(getattr(sys.modules.get("sitecustomize"), "__file__", None))
try:
    import missing
except ImportError as error:
    assert len(traceback.extract_tb(error.__traceback__)) == 1
""",
    "ruby": """
exit 1 if ENV.keys.grep(/SNAPBOOT_EXPLAIN/).any? || ENV.key?("RUBYOPT")
exit 1 if $LOADED_FEATURES.grep(/explain/).any?
exit 1 unless at_exit { }.is_a?(Proc) && Kernel.private_method_defined?(:require)
""",
}
