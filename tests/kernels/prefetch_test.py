"""The products that live from DRAM have their prefetches in the object code.

g++ 12 takes a function that only prefetches for one without effects and may drop its calls; the results are right
then, and a decode step takes 15 % longer, which no other test sees.

  prefetch_test.py LIBRARY
"""
import re
import subprocess
import sys

LEAST = {"x86_avx512_int8_dot.cc.o": 200, "x86_avx2_int8_dot.cc.o": 80, "x86_avx512_dot.cc.o": 40, "x86_avx2_dot.cc.o": 10,
         "x86_avx512_int8.cc.o": 18, "x86_avx512_int8_few.cc.o": 24, "x86_avx512_int8_lanes.cc.o": 100}


def main():
    listing = subprocess.run(["objdump", "-d", "--no-show-raw-insn", sys.argv[1]], stdout=subprocess.PIPE, text=True, check=True)
    count, name = {}, ""
    for line in listing.stdout.splitlines():
        member = re.match(r"(\S+\.o):\s+file format", line)
        if member:
            name = member.group(1)
        elif "\tprefetch" in line:
            count[name] = count.get(name, 0) + 1
    faults = [f"{name}: {count.get(name, 0)} prefetches, not {least} and more" for name, least in LEAST.items()
              if count.get(name, 0) < least]
    print("\n".join(faults) or f"{sum(count.values())} prefetches")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
