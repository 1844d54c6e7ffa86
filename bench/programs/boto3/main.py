"""Uses the client as far as that goes without a network."""

from client import s3

print(s3.meta.endpoint_url)
