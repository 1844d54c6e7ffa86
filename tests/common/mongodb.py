"""Answers as a MongoDB server without data does, to every command alike: with the number of the connection, and the number of the
client's session. `python mongodb.py PORT`; Debian has no such server."""

import itertools
import socketserver
import struct
import sys

import bson

# The fields before a message, and its kinds: a client begins with an old one.
HEAD, REPLY, MESSAGE = struct.Struct("<iiii"), 1, 2013
NUMBERS = itertools.count(1)
HELLO = {
    "ok": 1, "isWritablePrimary": True, "ismaster": True, "helloOk": True, "minWireVersion": 0, "maxWireVersion": 21,
    "maxBsonObjectSize": 1 << 24, "maxMessageSizeBytes": 48_000_000, "maxWriteBatchSize": 100_000, "logicalSessionTimeoutMinutes": 30,
}  # fmt: skip


class Connection(socketserver.StreamRequestHandler):
    def handle(self):
        number = next(NUMBERS)
        while len(head := self.rfile.read(HEAD.size)) == HEAD.size:
            size, request, _, kind = HEAD.unpack(head)
            data = self.rfile.read(size - HEAD.size)
            # Behind flags, and the kind of a section or the name of a collection with two numbers.
            command = bson.decode(data[5:] if kind == MESSAGE else data[data.index(b"\0", 4) + 9 :])
            is_hello = next(iter(command)).lower() in ("hello", "ismaster")
            answer = bson.encode(HELLO if is_hello else {"ok": 1, "connection": number, "session": command.get("lsid")})
            before = b"\0" * 5 if kind == MESSAGE else struct.pack("<iqii", 8, 0, 0, 1)
            body = before + answer
            self.wfile.write(HEAD.pack(HEAD.size + len(body), 0, request, MESSAGE if kind == MESSAGE else REPLY) + body)


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True


Server(("127.0.0.1", int(sys.argv[1])), Connection).serve_forever()
