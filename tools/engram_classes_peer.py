#!/usr/bin/env python3
"""Compares our Engram classes with those of the Python package `tokenizers`, id by id.

    tools/engram_classes_peer.py --program BUILD/tests/codec/tokenizer_lines TOKENIZER_JSON...

The package runs the release's rule (docs/spec/model.md 7.1).  Then the last file, with added tokens of
random texts and unused ids after them, is compared in the same way.  Exit status 1 if anything differs, 77 if the
package is neither installed nor to be had.
"""

import argparse
import json
import pathlib
import random
import sys
import tempfile

from tokenizer_peer import SOURCE, SPACES, ask, find_package

PAD = 2
SPACE_MARK = "\ue000"
# The package decomposes and strips by tables of an old Unicode and lowers by a new one; ours are of one
# version.  What is random comes from scripts that no version between has changed.
SCRIPTS = [
    (0x20, 0x7E), (0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x52F), (0x5D0, 0x5EA),
    (0x620, 0x669), (0x905, 0x94D), (0x981, 0x9CD), (0xE01, 0xE3A), (0x1E00, 0x1FFE),
    (0x2000, 0x205F), (0x20D0, 0x20F0), (0x2100, 0x218B), (0x2460, 0x24FF), (0x3041, 0x3096),
    (0x3099, 0x30FF), (0x3131, 0x318E), (0x3300, 0x33FE), (0x4E00, 0x9FA5), (0xAC00, 0xD7A3),
    (0xE000, 0xE003), (0xF900, 0xFA6D), (0xFB00, 0xFB06), (0xFB50, 0xFBB1), (0xFDF0, 0xFDFC),
    (0xFE00, 0xFE0F), (0xFF01, 0xFFDC), (0x1D400, 0x1D7CB), (0x1F130, 0x1F149), (0x1F600, 0x1F64F),
    (0xE0100, 0xE01EF),
]  # fmt: skip


def peer_classes(file, vocab_size):
    from tokenizers import Regex, Tokenizer
    from tokenizers.normalizers import NFD, NFKC, Lowercase, Replace, Sequence, Strip, StripAccents

    tokenizer = Tokenizer.from_file(str(file))
    normalizer = Sequence([
        NFKC(), NFD(), StripAccents(), Lowercase(), Replace(Regex(r"[ \t\r\n]+"), " "),
        Replace(Regex(r"^ $"), SPACE_MARK), Strip(), Replace(SPACE_MARK, " "),
    ])  # fmt: skip
    numbers, classes, texts = {}, [], []
    for i in range(vocab_size):
        text = tokenizer.decode([i], skip_special_tokens=False)
        if "\ufffd" in text:
            key = tokenizer.id_to_token(i)
        else:
            key = normalizer.normalize_str(text) or text
        texts.append(text)
        classes.append(numbers.setdefault(key, len(numbers)))
    return classes, texts


def compare(program, file, vocab_size):
    """Returns the number of ids that differ."""
    theirs, texts = peer_classes(file, vocab_size)
    question = f"E {vocab_size} {PAD} {max(theirs) + 1}"
    answer = ask(program, file, [question])[0]
    if answer.startswith("error"):
        print(f"{file.name}: {answer}")
        return vocab_size
    ours = [int(number) for number in answer.split()]
    if len(ours) != len(theirs):
        print(f"{file.name}: {len(ours)} ids, package {len(theirs)}")
        return vocab_size
    wrong = [i for i in range(vocab_size) if ours[i] != theirs[i]]
    for i in wrong[:5]:
        print(f"{file.name}: id {i} {texts[i]!r}: class {ours[i]}, package {theirs[i]}")
    shown = f"{vocab_size} ids, {max(theirs) + 1} classes, pad {theirs[PAD]}"
    print(f"{file.name}: {shown}, {len(wrong)} different")
    return len(wrong)


def random_character(rng):
    if rng.random() < 0.15:
        return rng.choice(SPACES + "\x1c\x1f\ufffd")
    return chr(rng.randint(*rng.choice(SCRIPTS)))


def with_random_tokens(document, count, rng):
    """The document with added tokens of random texts."""
    texts = {token["content"] for token in document["added_tokens"]} | set(document["model"]["vocab"])
    next_id = 1 + max(token["id"] for token in document["added_tokens"])
    for number in range(count):
        length = rng.choice((1, 1, 2, 3, 6))
        text = "".join(random_character(rng) for _ in range(length))
        if text in texts:
            continue
        texts.add(text)
        document["added_tokens"].append({
            "id": next_id, "content": text, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": False, "special": number % 3 == 0,
        })  # fmt: skip
        next_id += 1
    return document


def vocab_size_of(document):
    ids = [token["id"] for token in document["added_tokens"]]
    return 1 + max(ids + list(document["model"]["vocab"].values()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("files", nargs="+", type=pathlib.Path, metavar="TOKENIZER_JSON")
    parser.add_argument("--program", required=True, help="the program tokenizer_lines")
    parser.add_argument("--venv", type=pathlib.Path, default=SOURCE / "build/tokenizer_venv")
    parser.add_argument("--seed", type=int, default=20261129)
    parser.add_argument("--count", type=int, default=20000, help="random added tokens")
    options = parser.parse_args()
    find_package(options.venv)

    wrong = 0
    for file in options.files:
        document = json.loads(file.read_text(encoding="utf-8"))
        wrong += compare(options.program, file, vocab_size_of(document))
    with tempfile.TemporaryDirectory() as folder:
        changed = with_random_tokens(document, options.count, random.Random(options.seed))
        file = pathlib.Path(folder) / "random.json"
        file.write_text(json.dumps(changed), encoding="utf-8")
        wrong += compare(options.program, file, vocab_size_of(changed) + 7)
    print("all equal" if wrong == 0 else f"{wrong} differences (seed {options.seed})")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
