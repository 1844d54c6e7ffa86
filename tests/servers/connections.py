"""What programs have connected while they booted, and what comes of that: the same in both languages.

Each program is a module that defines `use`. That prints "same" if the connection is the boot's, as in an ordinary start, and "another" if
not, and whatever else has to be as ordinarily. Words in capitals stand for places of servers.
"""

import dataclasses

# What a thaw prints, but for a connection that is another one, is what an ordinary start prints.
CONNECTS_AGAIN = None


@dataclasses.dataclass(frozen=True)
class Case:
    """about: what is connected. python, ruby: the module; none where the other language has all there is to see. needs: what the module
    of Ruby requires. refusal: words of the refusal, by language if they differ; none if the freeze must work."""

    about: str
    python: str | None
    ruby: str | None = None
    needs: tuple[str, ...] = ()
    refusal: str | dict[str, str | None] | None = CONNECTS_AGAIN

    def refusal_in(self, language):
        return self.refusal.get(language) if isinstance(self.refusal, dict) else self.refusal


def case(*arguments, **options):
    """The Case, as a parameter with its name."""
    import pytest

    made = Case(*arguments, **options)
    return pytest.param(made, id=made.about)


def put(words, places, folder):
    """The words, with places for what stands for them."""
    for word, place in {**places, "FILE": str(folder / "file.db")}.items():
        words = words.replace(word, place)
    return words


HTTP_PYTHON = """\
def use(): print("same" if get() == NUMBER else "another")
NUMBER = get()
"""
DRIVER_PYTHON = """
def pid():
    cursor = CLIENT.cursor(); cursor.execute("select pg_backend_pid()"); return cursor.fetchone()[0]
def use(): print("same" if pid() == NUMBER else "another")
NUMBER = pid()
"""
ENGINE_PYTHON = """\
import sqlalchemy
ENGINE = sqlalchemy.create_engine("postgresql+psycopg2://postgres@/postgres?host=FOLDER")
def pid(connection): return connection.scalar(sqlalchemy.text("select pg_backend_pid()"))
def use():
    with ENGINE.connect() as connection: print("same" if pid(connection) == NUMBER else "another")
with ENGINE.connect() as connection: NUMBER = pid(connection)
"""
ACTIVE_RECORD = """\
require "active_record"
ActiveRecord::Base.establish_connection(adapter: "postgresql", host: "FOLDER", username: "postgres", database: "postgres")
def pid = ActiveRecord::Base.connection.select_value("select pg_backend_pid()")
NUMBER = pid
def use = puts(pid == NUMBER ? "same" : "another")
"""
ACTIVE_RECORD_SQLITE = """\
require "active_record"
ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: "FILE")
ActiveRecord::Base.connection.execute("create table if not exists t (a)")
def use = p(ActiveRecord::Base.connection.select_value("select count(*) from t"))
"""
ENGINE_SQLITE = """\
import sqlalchemy
ENGINE = sqlalchemy.create_engine("sqlite:///FILE")
with ENGINE.begin() as connection: connection.execute(sqlalchemy.text("create table if not exists t (a)"))
def use():
    with ENGINE.connect() as connection: print(connection.scalar(sqlalchemy.text("select count(*) from t")))
"""
REDIS_PYTHON = """\
import redis
CLIENT = redis.Redis(unix_socket_path="SOCKET", db=3)
def use(): print("same" if CLIENT.client_id() == NUMBER else "another", CLIENT.set("a", "1"), CLIENT.client_info()["db"])
NUMBER = CLIENT.client_id()
"""
OPEN_SOCKET = "connected unix socket"

SHARED = [
    case(
        "Redis", REDIS_PYTHON,
        """\
require "redis"
CLIENT = Redis.new(path: "SOCKET", db: 3)
NUMBER = CLIENT.call("CLIENT", "ID")
def use = puts([CLIENT.call("CLIENT", "ID") == NUMBER ? "same" : "another", CLIENT.set("a", "1"), CLIENT.connection[:db]].inspect)
""",
        needs=("redis",),
    ),
    case("a pool of databases", ENGINE_PYTHON, ACTIVE_RECORD, needs=("active_record", "pg")),
    case(
        "a transaction in a pool",
        ENGINE_PYTHON + "\nHELD = ENGINE.connect(); HELD.execute(sqlalchemy.text('select 1'))\n",
        ACTIVE_RECORD + "\nActiveRecord::Base.connection.begin_transaction(joinable: false)\n",
        needs=("active_record", "pg"), refusal={"python": "psycopg2/__init__.py:", "ruby": "has a transaction that is open"},
    ),
    case(
        "a driver", 'import psycopg2\nCLIENT = psycopg2.connect("host=FOLDER user=postgres")\n' + DRIVER_PYTHON,
        """\
require "pg"
CLIENT = PG.connect(host: "FOLDER", user: "postgres", dbname: "postgres")
def use = p(CLIENT.exec("select 42").getvalue(0, 0))
""",
        needs=("pg",), refusal={"python": "psycopg2/__init__.py:", "ruby": "pg/connection.rb"},
    ),
    case(
        "HTTP", 'import http.client\nCLIENT = http.client.HTTPConnection("WEB")\n'
        "def get(): CLIENT.request('GET', '/'); return CLIENT.getresponse().read()\n" + HTTP_PYTHON,
        """\
require "net/http"
HOST, PORT = "WEB".split(":")
CLIENT = Net::HTTP.start(HOST, PORT.to_i)
NUMBER = CLIENT.get("/").body
def use = puts(CLIENT.get("/").body == NUMBER ? "same" : "another")
""",
    ),
    case("SQLite", ENGINE_SQLITE, ACTIVE_RECORD_SQLITE, needs=("active_record", "sqlite3")),
    case(
        "SQLite in memory", ENGINE_SQLITE.replace("FILE", ":memory:"), ACTIVE_RECORD_SQLITE.replace("FILE", ":memory:"),
        needs=("active_record", "sqlite3"), refusal={"ruby": "in memory"},
    ),
]  # fmt: skip

POOL_OF_DRIVER = """\
import psycopg2.pool
POOL = psycopg2.pool.ThreadedConnectionPool(1, 3, "host=FOLDER user=postgres")
def pid():
    one = POOL.getconn(); number = one.info.backend_pid; POOL.putconn(one); return number
def use(): print("same" if pid() == NUMBER else "another")
NUMBER = pid()
"""
POOL_WITH_THREADS = """\
import psycopg_pool
POOL = psycopg_pool.ConnectionPool("host=FOLDER user=postgres", min_size=1, open=True)
def pid():
    with POOL.connection() as one: return one.execute("select pg_backend_pid()").fetchone()[0]
def use(): print("same" if pid() == NUMBER else "another")
NUMBER = pid()
"""
DJANGO = """\
import django
from django.conf import settings
settings.configure(DATABASES={"default": {
    "ENGINE": "django.db.backends.BACKEND", "HOST": "FOLDER", "USER": "postgres", "NAME": "CALLED", "CONN_MAX_AGE": None, "OPTIONS": {}}})
django.setup()
from django.db import connection, transaction
def ask(words):
    with connection.cursor() as cursor:
        cursor.execute(words)
        return cursor.fetchone()
"""
DJANGO_POOL = DJANGO.replace("BACKEND", "postgresql").replace("CALLED", "postgres") + """\
def pid(): return ask("select pg_backend_pid()")[0]
def use(): print("same" if pid() == NUMBER else "another")
NUMBER = pid()
"""
DJANGO_SQLITE = DJANGO.replace("BACKEND", "sqlite3").replace("CALLED", ":memory:") + """\
with connection.cursor() as cursor: cursor.execute("create table t as select 7 as a")
def use(): print(ask("select a from t"))
"""
PIPELINE = "\nPIPELINE = CLIENT.pipeline(); PIPELINE.watch('a')\n"
S3 = """\
import boto3
CLIENT = boto3.client("s3", endpoint_url="http://WEB", region_name="x", aws_access_key_id="a", aws_secret_access_key="b")
def get(): return CLIENT.get_object(Bucket="a", Key="b")["Body"].read()
"""
MONGODB = """\
import pymongo
CLIENT = pymongo.MongoClient("mongodb://MONGO")
FIRST = CLIENT.admin.command("ping")
def use():
    now = CLIENT.admin.command("ping")
    are = now["connection"] == FIRST["connection"], now["session"] == FIRST["session"]
    print("same" if are == (True, True) else "another" if are == (False, False) else "shared")
"""
IN_PYTHON = [
    case("redis: a blocking pool", REDIS_PYTHON.replace(
        'redis.Redis(unix_socket_path="SOCKET", db=3)', 'redis.Redis.from_pool(redis.BlockingConnectionPool.from_url("unix://SOCKET?db=3"))')),
    case("redis: a client with one connection", REDIS_PYTHON.replace("db=3", "db=3, single_connection_client=True")),
    case("redis: keys are watched", REDIS_PYTHON + PIPELINE, refusal=OPEN_SOCKET),
    case("redis: subscribed", REDIS_PYTHON + "\nHEARS = CLIENT.pubsub(); HEARS.subscribe('a')\n", refusal=OPEN_SOCKET),
    case("psycopg2: a pool", POOL_OF_DRIVER),
    case("psycopg2: a connection in use", POOL_OF_DRIVER + "\nHELD = POOL.getconn()\n", refusal=OPEN_SOCKET),
    case("psycopg: a driver", 'import psycopg\nCLIENT = psycopg.connect("host=FOLDER user=postgres")\n' + DRIVER_PYTHON,
         refusal="psycopg/"),
    case("psycopg: a pool", POOL_WITH_THREADS),
    case("psycopg: a connection in use", POOL_WITH_THREADS + "\nHELD = POOL.getconn()\n", refusal=OPEN_SOCKET),
    case("SQLAlchemy: psycopg", ENGINE_PYTHON.replace("psycopg2", "psycopg")),
    case("SQLAlchemy: one connection", ENGINE_PYTHON.replace("host=FOLDER\"", "host=FOLDER\", poolclass=sqlalchemy.StaticPool")),
    case("Django", DJANGO_POOL),
    case("Django: a pool", DJANGO_POOL.replace('"OPTIONS": {}', '"OPTIONS": {"pool": True}').replace('"CONN_MAX_AGE": None, ', "")),
    case("Django: a transaction", DJANGO_POOL + "\ntransaction.atomic().__enter__()\npid()\n", refusal=OPEN_SOCKET),
    case("Django: SQLite in memory", DJANGO_SQLITE),
    case("requests", 'import requests\nCLIENT = requests.Session()\ndef get(): return CLIENT.get("http://WEB/").text\n' + HTTP_PYTHON),
    case("urllib3", 'import urllib3\nCLIENT = urllib3.PoolManager()\ndef get(): return CLIENT.request("GET", "http://WEB/").data\n'
         + HTTP_PYTHON),
    case("urllib3: an answer that was not read", 'import urllib3\nCLIENT = urllib3.PoolManager()\n'
         'HELD = CLIENT.request("GET", "http://WEB/", preload_content=False)\ndef use(): pass\n', refusal="connected TCP socket (WEB)"),
    case("httpx", 'import httpx\nCLIENT = httpx.Client()\ndef get(): return CLIENT.get("http://WEB/").text\n' + HTTP_PYTHON),
    case("boto3", S3 + HTTP_PYTHON),
    case("PyMongo", MONGODB),
    case("PyMongo: a session", MONGODB + "\nHELD = CLIENT.start_session(); CLIENT.admin.command('ping', session=HELD)\n",
         refusal="start_session"),
    case("gRPC", "import grpc\nCLIENT = grpc.insecure_channel('127.0.0.1:1')\ndef use(): pass\n", refusal="a gRPC channel was made"),
    case("SQLite with a log of its own", ENGINE_SQLITE.replace("ENGINE.begin() as connection:",
         "ENGINE.begin() as connection: connection.exec_driver_sql('pragma journal_mode=wal');")),
    case("SQLite: a driver with a log", 'import sqlite3\nCLIENT = sqlite3.connect("FILE")\nCLIENT.execute("pragma journal_mode=wal")\n'
         'CLIENT.execute("create table t (a)")\nCLIENT.commit()\ndef use(): pass\n', refusal="holds a POSIX file lock"),
    case("a socket", 'import socket\nCLIENT = socket.create_connection("WEB".split(":"))\ndef use(): pass\n',
         refusal="connected TCP socket (WEB), opened by "),
]  # fmt: skip
