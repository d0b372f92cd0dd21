# Runs the scenarios of trainers: other people's programs as the job; sourced by ./dev.

# trainers_report REPORT [ARGUMENT...]: runs scenarios on the lane of programs and counts them.
trainers_report() {
  local report="$1"
  shift
  rm -rf "$report"
  checked build/release/reprise run scenarios/trainers --lane program --quiet --jobs "$jobs" --report "$report" "$@"
}

# trainers_tests PYTHON PATTERN: the tests in Python of the witness, of what it takes from torch and from
# frameworks, and of what `reprise init` writes. Those of frameworks run where ./dev watch has installed them.
trainers_tests() {
  local file python broken=0 frameworks="${XDG_CACHE_HOME:-$HOME/.cache}/reprise/watch/frameworks/bin/python"
  for file in tests/trainers/$2; do
    python="$1"
    [[ "$file" != */test_callbacks.py || ! -x "$frameworks" ]] || python="$frameworks"
    checked env "REPRISE_WITNESS_LIBRARY=$PWD/build/release/libreprise_witness.so" "REPRISE=$PWD/build/release/reprise" \
      "$python" -m unittest discover tests/trainers -p "${file##*/}" || broken=1
  done
  ((broken == 0))
}

# trainers_run REPORT [ARGUMENT...]: the witness's own tests and the scenarios. Where torch and
# Megatron-Core can't be installed it runs our engine's alone, and returns $interop_not_run.
trainers_run() {
  local report="$1" rc broken=0
  shift
  build_for_tests release reprise trainer_engine || return 1
  interop_environment
  rc=$?
  if ((rc == interop_not_run)); then
    say "trainers: torch and megatron-core not run: $interop_why"
    record 0 0 1
    trainers_report "$report" --tag engine || return 1
    return "$interop_not_run"
  elif ((rc != 0)); then
    say "trainers: $interop_why"
    record 0 1 0
    return 1
  fi
  export REPRISE_PYTHON="$interop_env/bin/python"
  # The program that `reprise init` writes is the trainer of a core scenario.
  local tests='test_*.py'
  [[ "$*" != '--tag core' ]] || tests='test_witness*.py'
  trainers_tests "$REPRISE_PYTHON" "$tests" || broken=1
  trainers_report "$report" "$@" || broken=1
  ((broken == 0))
}

# verb_trainers [--all] [ARGUMENT...]: those with the tag core; with --all every scenario.
verb_trainers() {
  local rc which=(--tag core)
  if [[ "${1:-}" == --all ]]; then
    which=()
    shift
  fi
  verb_setup || return 1
  begin_results
  trainers_run build/trainers "${which[@]}" "$@"
  rc=$?
  print_total
  return "$rc"
}
