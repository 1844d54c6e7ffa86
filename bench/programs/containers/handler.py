
import requests


def handler(event):
    url = requests.Request("GET", event["url"], params=event.get("params")).prepare().url
    return {"url": url}
