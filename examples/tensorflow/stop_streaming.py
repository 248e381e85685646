"""Ends the stream that feeds a cluster: what has come is still trained on, then TFCluster.shutdown(ssc) returns.

    CREMA_TOKEN=$(cat stream.token) PYTHONPATH=tensorflowonspark.zip python stop_streaming.py HOST PORT

HOST and PORT are cluster_meta["server_addr"], the token, in hexadecimal, is cluster_meta["token"] of the cluster.
"""

import sys

from tensorflowonspark import reservation

if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: CREMA_TOKEN=... stop_streaming.py HOST PORT")
    client = reservation.Client((sys.argv[1], int(sys.argv[2])))
    client.request_stop()
    client.close()
