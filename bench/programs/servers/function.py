"""A function of AWS Lambda."""


def handler(event, context):
    return {"got": event}
