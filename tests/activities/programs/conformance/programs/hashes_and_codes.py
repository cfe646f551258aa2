"""Hashes, encodings, structs, UUIDs of names and compression."""
import base64
import binascii
import hashlib
import hmac
import struct
import unicodedata
import urllib.parse as up
import uuid
import zlib


async def main():
    body = "Grüße, Welt".encode()
    return [
        hashlib.sha256(body).hexdigest()[:16],
        hashlib.md5(b"a", usedforsecurity=False).hexdigest()[:8],
        hmac.new(b"key", body, "sha1").hexdigest()[:8],
        base64.b64encode(body).decode(),
        base64.urlsafe_b64decode("_-8=").hex(),
        binascii.crc32(body),
        struct.unpack(">HI", struct.pack(">HI", 7, 2**31)),
        str(uuid.uuid5(uuid.NAMESPACE_DNS, "sennit.example")),
        zlib.decompress(zlib.compress(body * 50))[:7].decode(),
        unicodedata.normalize("NFKD", "é ﬁ").encode("ascii", "ignore").decode(),
        up.urlencode({"q": "a b&c", "n": [1, 2]}, doseq=True),
        up.parse_qs("a=1&a=2&b="),
        up.urljoin("https://x.org/a/b", "../c?d#e"),
        body.decode("latin-1")[:5],
        b"\xff\xfe".decode("utf-8", errors="replace"),
    ]
