"""Makes private keys, and archives of them, for tests.

They are put together at run time, because the guard reads the tests, too.
"""

import io
import tarfile
import zipfile


def pem(kind: str = "") -> str:
    return "\n".join(
        [f"-----BEGIN {kind}PRIVATE KEY-----", "AAAA", f"-----END {kind}PRIVATE KEY-----", ""]
    )


def zipped(content: dict[str, bytes], method=zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, blob in content.items():
            archive.writestr(name, blob)
    return file.getvalue()


def tarred(content: dict[str, bytes], mode: str = "w:gz") -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode) as archive:
        for name, blob in content.items():
            member = tarfile.TarInfo(name)
            member.size = len(blob)
            archive.addfile(member, io.BytesIO(blob))
    return file.getvalue()
