#!/usr/bin/env bash
# Gathers the evidence for a merge and judges it: installs or builds the program, runs every scenario
# of a catalogue, and asks the gate. ./dev gate calls it. A training command alone needs no catalogue:
# the recipes beside this file watch it.
set -u -o pipefail
tree="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)" || exit 1
readonly tree

usage() {
  cat <<'EOF'
usage: ci/gate.sh [--package FILE | --program FILE] [--lane LANE] [--scenarios DIR] [--report DIR]
                  [--history DIR] [--jobs N] [-- GATE-ARGUMENT...]

  --package FILE    install this tarball or wheel of './dev package', a file or an address, under
                    build/installed, and use its program
  --program FILE    a reprise that is there already
                    without either, or with an empty FILE, this tree's program is built; on the lane
                    sim its properties and mutants are tried, too
  --lane LANE       sim, mpi or gpu, where every scenario runs twice, or program, for trainers (sim)
  --scenarios DIR   the catalogue to run (scenarios)
  --report DIR      where the report goes (build/report)
  --history DIR     where earlier reports are: page, summary and annotations say which problems are
                    new, ongoing, rare or resolved. This report is added, and the newest ten are kept
  --jobs N          how many runs at once (one per processor)
  GATE-ARGUMENT     what 'reprise gate' is given besides the report;
                    otherwise: --lane LANE --baseline reports/baseline.json

A step runs also after one that failed, but not after wrong usage. Exit codes: 0 all passed and the
gate accepted, 1 not, 2 wrong usage, or files that can't be read. Outside CI (the variable is not set)
a tree with uncommitted changes is allowed.
EOF
}

# check COMMAND...: runs a step, and notes whether it failed. Wrong usage ends all.
failed=0
check() {
  local rc
  printf '==> %s\n' "$*"
  "$@"
  rc=$?
  ((rc != 2)) || exit 2
  ((rc == 0)) || { printf '    failed with exit code %d\n' "$rc"; failed=1; }
}

# install FILE: unpacks a tarball or installs a wheel; sets program.
install() {
  local file="$1" place="$PWD/build/installed"
  printf '==> installing %s\n' "$file"
  rm -rf "$place"
  mkdir -p "$place" || return 1
  if [[ "$file" == *://* ]]; then
    curl -fsSL --retry 3 -o "$place/${file##*/}" "$file" || return 1
    file="$place/${file##*/}"
  fi
  case "$file" in
    *.tar.gz)
      tar -C "$place" --strip-components=1 -xzf "$file" || return 1
      program="$place/bin/reprise"
      ;;
    *.whl)
      python3 -m venv "$place" &&
        "$place/bin/python" -m pip install --quiet --disable-pip-version-check --no-index "$file" || return 1
      program="$place/bin/reprise"
      ;;
    *)
      printf 'ci/gate.sh: %s is neither a .tar.gz nor a .whl\n' "$file" >&2
      return 1
      ;;
  esac
  "$program" --version
}

# Adds the report to the history. Removes the oldest reports that an earlier run added.
remember() {
  local place kept=10 added i
  [[ -n "$history" && -f "$report/report.json" ]] || return 0
  place="$history/reprise-$(date -u +%Y%m%dT%H%M%S.%N)"
  mkdir -p "$place" && cp "$report/report.json" "$place" || return 1
  added=("$history"/reprise-*)
  for ((i = 0; i < ${#added[@]} - kept; i++)); do rm -r "${added[i]}"; done
}

# The summary shows what went wrong, so it is made whatever the steps said.
summarize() {
  local words=()
  [[ -f "$report/report.json" ]] || return 0
  [[ -z "${GITHUB_ACTIONS:-}" ]] || words+=(--annotate)
  # The first run has no history yet.
  ! compgen -G "$history/*/report.json" >/dev/null || words+=(--history "$history")
  check "$program" report "$report" "${words[@]}"
  if [[ -n "${GITHUB_STEP_SUMMARY:-}" ]]; then
    cat "$report/summary.md" >>"$GITHUB_STEP_SUMMARY"
  fi
}

main() {
  local dirty=() gate=() twice=(--double) own=0
  program="" package="" lane=sim scenarios=scenarios report=build/report history="" jobs="$(nproc)"
  while (($# > 0)); do
    case "$1" in
      --package | --program | --lane | --scenarios | --report | --history | --jobs)
        (($# > 1)) || { usage >&2; exit 2; }
        printf -v "${1#--}" %s "$2"
        shift
        ;;
      --)
        shift
        gate=("$@")
        break
        ;;
      -h | --help)
        usage
        exit
        ;;
      *)
        usage >&2
        exit 2
        ;;
    esac
    shift
  done
  if [[ -n "$package" && -n "$program" ]]; then
    usage >&2
    exit 2
  elif [[ -n "$package" ]]; then
    install "$package" || exit 1
  elif [[ -z "$program" ]]; then
    "$tree/dev" build release reprise || exit 1
    program="$tree/build/release/reprise"
    [[ "$lane" != sim ]] || own=1
  fi
  if ! command -v "$program" >/dev/null; then
    printf 'ci/gate.sh: there is no program %s\n' "$program" >&2
    exit 2
  fi
  [[ -n "${CI:-}" ]] || dirty=(--allow-dirty)
  [[ "$lane" != program ]] || twice=()
  ((${#gate[@]} > 0)) || gate=(--lane "$lane" --baseline reports/baseline.json)
  # What an earlier run showed is no evidence of this one.
  rm -f "$report"/{report.json,junit.xml,summary.md,report.html}
  check "$program" run "$scenarios" --lane "$lane" "${twice[@]}" --jobs "$jobs" --report "$report"
  if ((own)); then
    check "$program" search properties --jobs "$jobs" --out "$report/found" --report "$report"
    check "$program" mutants "$scenarios" --jobs "$jobs" --report "$report"
  fi
  check "$program" gate "$report" "${gate[@]}" "${dirty[@]}"
  # A gate that runs after this job can demand this very report with --digest.
  [[ ! -f "$report/report.json" ]] || sha256sum "$report/report.json"
  summarize
  remember || failed=1
  exit "$failed"
}

main "$@"
