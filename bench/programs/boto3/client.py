"""An S3 client, made while the module is imported, as many programs do. It connects to nothing."""

import boto3

s3 = boto3.client("s3", region_name="eu-west-1", aws_access_key_id="none", aws_secret_access_key="none")
