"""Thaws share no keys of session tickets, and generators that nobody can renew are named."""

import pytest
from common import support

# The name of the key that a server's session tickets are encrypted with, as it goes over the wire (RFC 5077); None: no ticket.
TICKETS = """
import ssl
ANONYMOUS = "AECDH-AES128-SHA:@SECLEVEL=0"  # no certificate is needed for these

def context(protocol):
    made = ssl.SSLContext(protocol)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    made.maximum_version = ssl.TLSVersion.TLSv1_2
    made.set_ciphers(ANONYMOUS)
    return made

server = context(ssl.PROTOCOL_TLS_SERVER)

def key_name():
    asked, answered = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context(ssl.PROTOCOL_TLS_CLIENT).wrap_bio(answered, asked)
    heard, seen = ssl.MemoryBIO(), b""
    serving = server.wrap_bio(asked, heard, server_side=True)
    for _ in range(4):
        for end in (client, serving):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                pass
        text = heard.read()
        seen += text
        answered.write(text)
    while seen:
        kind, size = seen[0], int.from_bytes(seen[3:5], "big")
        # A handshake record with the message NewSessionTicket: type, length, lifetime, length, ticket.
        if kind == 22 and seen[5] == 4:
            return seen[15:31].hex()
        seen = seen[5 + size:]
    return None
"""


def test_two_thaws_do_not_share_the_keys_of_session_tickets(tmp_path):
    (tmp_path / "app.py").write_text(TICKETS)
    env = support.environment(PYTHONPATH=str(tmp_path))
    show = "import app; print(app.key_name())"
    ordinary = [support.run([support.PYTHON, "-c", show], env=env).out for _ in range(2)]
    assert ordinary[0] != ordinary[1] and "None" not in ordinary[0], ordinary
    image = support.frozen(tmp_path / "app.img", [support.PYTHON], "--preload", "app", env=env)
    thawed = [support.thawed([image, "-c", show], env=env).out for _ in range(2)]
    assert thawed[0] != thawed[1] or thawed[0] == "None\n", thawed


RUBY_CONTEXT = """
require "openssl"
SERVER, SET_UP = OpenSSL::SSL::SSLContext.new, OpenSSL::SSL::SSLContext.new
KEY = OpenSSL::PKey::EC.generate("prime256v1")
SET_UP.cert = OpenSSL::X509::Certificate.new
SET_UP.freeze
"""


@support.needs_ruby
def test_contexts_of_ruby_have_no_session_tickets(tmp_path):
    (tmp_path / "app.rb").write_text(RUBY_CONTEXT)
    result = support.freeze(tmp_path / "app.img", [support.RUBY], "--preload", "./app", cwd=tmp_path)
    assert result.status == 0 and "warning: SET_UP is a server's TLS context that has been set up" in result.err, result
    show = "require './app'; p SERVER.options & OpenSSL::SSL::OP_NO_TICKET == 0"
    assert support.thawed([tmp_path / "app.img", "-e", show], cwd=tmp_path).out == "false\n"


PLAIN = {
    "attribute": "rng = _random.Random()",
    "closure": "def hide():\n    rng = _random.Random()\n    return rng.random\nrandom = hide()",
    "dictionary": "held = {'one': ({'rng': _random.Random()},)}",
    "derived": "class Slim(_random.Random):\n    __slots__ = ()\nrng = Slim()",
}


@pytest.mark.parametrize("held", PLAIN)
def test_a_generator_of_the_class_below_random_is_named(tmp_path, held):
    (tmp_path / "app.py").write_text("import _random\n" + PLAIN[held])
    env = support.environment(PYTHONPATH=str(tmp_path))
    result = support.freeze(tmp_path / "app.img", [support.PYTHON], "--preload", "app", env=env)
    assert result.status == 0 and "holds random state that cannot be renewed" in result.err, result
