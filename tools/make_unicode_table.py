#!/usr/bin/env python3
"""Writes src/codec/unicode_table.inc: the general category of every code point.

The version must be the one that the tokenizer's training library used, which is Unicode 16.0, not
whatever this Python carries:

    pip install unicodedataplus==16.0.0.post1
    tools/make_unicode_table.py > src/codec/unicode_table.inc
"""

import sys

import unicodedataplus

VERSION = "16.0.0"
# The order of enum GeneralCategory in src/codec/unicode_table.h.
CATEGORIES = (
    "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co Cn"
).split()


def runs():
    """Yields (length, category number) of each maximal run of code points of one category."""
    start, current = 0, unicodedataplus.category("\0")
    for point in range(1, 0x110000):
        category = unicodedataplus.category(chr(point))
        if category != current:
            yield point - start, CATEGORIES.index(current)
            start, current = point, category
    yield 0x110000 - start, CATEGORIES.index(current)


def main():
    if unicodedataplus.unidata_version != VERSION:
        sys.exit(f"need Unicode {VERSION}, this package has {unicodedataplus.unidata_version}")
    print(f"// Made by tools/make_unicode_table.py from Unicode {VERSION}; do not edit.")
    print("// Runs of code points from U+0000 on, each written as length * 32 + category.")
    line = ""
    for length, category in runs():
        item = f"{length * 32 + category},"
        if len(line) + len(item) > 100:
            print(line)
            line = ""
        line += item
    print(line)


if __name__ == "__main__":
    main()
