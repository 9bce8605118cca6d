"""Unpacks the released V4 tokenizer and makes V4.1's: tokenizer_files.py DATA_FOLDER OUT_FOLDER."""

import hashlib
import json
import lzma
import pathlib
import sys

SHA256 = "8f9f37ca37fdc4f5fd36d5cf4d3b0e8392edb4e894fd10cc0d70b4957c8633cf"


def main():
    data, out = map(pathlib.Path, sys.argv[1:])
    out.mkdir(parents=True, exist_ok=True)
    v4 = lzma.decompress((data / "tokenizer.json.xz").read_bytes())
    if hashlib.sha256(v4).hexdigest() != SHA256:
        sys.exit("tokenizer.json.xz does not hold the released file")
    document = json.loads(v4)
    changed = json.loads((data / "v41_added_tokens.json").read_text(encoding="utf-8"))
    by_id = {token["id"]: token for token in changed["tokens"]}
    document["added_tokens"] = [by_id.get(t["id"], t) for t in document["added_tokens"]]
    v41 = json.dumps(document, ensure_ascii=False).encode()
    (out / "tokenizer_v4.json").write_bytes(v4)
    (out / "tokenizer_v41.json").write_bytes(v41)


if __name__ == "__main__":
    main()
