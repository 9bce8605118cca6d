#!/bin/sh
# Builds the fuzzers and runs each for SECONDS (20 by default) on its corpus in fuzz/corpus.
#   fuzz/run_fuzzers.sh [SECONDS]
# New inputs are kept in build/fuzz/corpus; a crash leaves its input in build/fuzz and fails the script.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-20}
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz --target fuzzers
for source in fuzz/*_fuzz.cc; do
  name=$(basename "$source" _fuzz.cc)
  mkdir -p "build/fuzz/corpus/$name"
  echo "fuzzing $name for $seconds s"
  "build/fuzz/fuzz/${name}_fuzz" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=16384 \
    -artifact_prefix="build/fuzz/$name-" -print_final_stats=0 -verbosity=0 \
    "build/fuzz/corpus/$name" "fuzz/corpus/$name"
done
echo "no failure found"
