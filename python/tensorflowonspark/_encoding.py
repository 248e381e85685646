"""Protobuf's encoding, as far as Crema's messages and Examples need it. A field is a varint (number << 3 | wire type)
and its value: wire type 0 a varint, 1 eight bytes, 2 a length and as many bytes, 5 four bytes.
"""

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_MASK = (1 << 64) - 1


def varint(value):
    """The bytes of a number; a negative one as two's complement of 64 bits."""
    value &= _MASK
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, content):
    """A field of bytes."""
    return varint(number << 3 | BYTES) + varint(len(content)) + content


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def read_varint(data, at, end):
    """(value, where it ends); ValueError when it does not end before `end`."""
    value = 0
    for place in range(min(end - at, 10)):
        byte = data[at + place]
        value |= (byte & 127) << 7 * place
        if byte < 128:
            return value & _MASK, at + place + 1
    raise ValueError(f"the number at byte {at} does not end")


def fields(data, at, end):
    """(field number, wire type, value) of the message in data[at:end]: an int, or (start, end) of the bytes."""
    while at < end:
        key, begin = read_varint(data, at, end)
        wire = key & 7
        if wire == VARINT:
            value, at = read_varint(data, begin, end)
        elif wire in (FIXED64, BYTES, FIXED32):
            length, start = read_varint(data, begin, end) if wire == BYTES else (8 if wire == FIXED64 else 4, begin)
            at = start + length
            if at > end:
                raise ValueError(f"{length} bytes from byte {start} reach beyond {end}, where it ends")
            value = (start, at)
        else:
            raise ValueError(f"byte {at} begins a field of wire type {wire}")
        yield key >> 3, wire, value
