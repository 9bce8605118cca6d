# shellcheck shell=bash disable=SC2154
# Functions that ./run and ./test share.  Needs: root (the checkout), name (of the calling script).

say() { printf '%s: %s\n' "$name" "$*" >&2; }

# Is one of the alternatives `a|b` installed?
have_package() {
  local alternative
  for alternative in ${1//|/ }; do
    [[ $(dpkg-query -W -f='${db:Status-Status}' "$alternative" 2>/dev/null) == installed ]] && return 0
  done
  return 1
}

# Fills `missing` with the lines of packages.txt of the given uses that are not installed.
find_missing() {
  missing=()
  local use package
  while read -r use package; do
    [[ " $* " == *" $use "* ]] || continue
    have_package "$package" || missing+=("$package")
  done < <(grep -v '^#' "$root/cmake/packages.txt")
}

# Installs what is missing, if that can be done without a question.  What it could not install stays in
# `missing`: it may be there in another form, so only a failing build makes it an error (list_missing).
ensure_packages() {
  find_missing "$@"
  [[ ${#missing[@]} -eq 0 ]] && return 0
  command -v apt-get >/dev/null || return 0
  local admin=()
  if [[ $(id -u) -ne 0 ]]; then
    sudo -n true 2>/dev/null || return 0
    admin=(sudo -n)
  fi
  say "installing ${missing[*]}"
  mkdir -p "$root/build"
  local log=$root/build/install.log
  "${admin[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update </dev/null >"$log" 2>&1 || true
  local wanted alternative chosen=()
  for wanted in "${missing[@]}"; do
    for alternative in ${wanted//|/ }; do
      if apt-cache show "$alternative" >/dev/null 2>&1; then
        chosen+=("$alternative")
        break
      fi
    done
  done
  if [[ ${#chosen[@]} -gt 0 ]]; then
    "${admin[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
      "${chosen[@]}" </dev/null >>"$log" 2>&1 || say "apt-get failed; see $log"
  fi
  find_missing "$@"
}

# For a build that failed: if packages are missing, they are the likely reason.  Ends the script with 2.
list_missing() {
  [[ ${#missing[@]} -eq 0 ]] && return 0
  say "these packages (Debian names) are not installed; install them and try again:"
  printf '  %s\n' "${missing[@]//|/ or }" >&2
  exit 2
}

# Runs a build command with its output in a log; on a terminal one line shows how far it is.
quiet() {
  local log=$1 code line
  shift
  mkdir -p "${log%/*}"
  if [[ -t 2 ]]; then
    "$@" </dev/null 2>&1 | tee "$log" | while IFS= read -r line; do
      [[ $line == \[*/*\]* ]] && printf '\r\033[Kbuilding %s' "${line:0:60}" >&2
    done
    code=${PIPESTATUS[0]}
    printf '\r\033[K' >&2
  else
    "$@" </dev/null >"$log" 2>&1
    code=$?
  fi
  [[ $code -eq 0 ]] && return 0
  tail -n 40 "$log" >&2
  say "failed: $* (all of its output: $log)"
  list_missing
  return 1
}
