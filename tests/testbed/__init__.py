"""Separate real daemons on loopback for tests: HDFS, YARN, an Azure blob server, an S3 server. See scripts/testbed."""
