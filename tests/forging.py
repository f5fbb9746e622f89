"""What the tests of both kinds of certificates share: weights with one of them changed."""

import json
import struct


def nudged(content: bytes, name: str, place: int, by: float) -> bytes:
    """A safetensors file with `by` added to entry `place` of the float32 tensor model/`name`."""
    start = 8 + struct.unpack("<Q", content[:8])[0]
    first = start + json.loads(content[8:start])[f"model/{name}"]["data_offsets"][0] + 4 * place
    value = struct.unpack("<f", content[first : first + 4])[0]
    return content[:first] + struct.pack("<f", value + by) + content[first + 4 :]
