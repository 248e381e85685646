"""Caffe's messages. protobuf reads the default values of their fields with the process's locale, whose decimal point
may be a comma.
"""

import locale

_numeric = locale.setlocale(locale.LC_NUMERIC)
locale.setlocale(locale.LC_NUMERIC, "C")
try:
    from . import caffe_pb2
finally:
    locale.setlocale(locale.LC_NUMERIC, _numeric)

__all__ = ["caffe_pb2"]
