# Runs the stages of continuous integration; sourced by ./dev.

# name, time limit in seconds, description. A limit is for a machine of half the usual speed with an empty
# compiler cache. docs/building.md has the seconds that a stage is to take on a usual one: together at most 30
# minutes with a compiler cache that knows every source, and 53 with an empty one (tests/layers/stages_test.cpp).
readonly stages=(
  "release 1800 release build and the tests"
  "catalogue 1200 all scenarios twice, random ones, the mutants, the gate"
  "mpi      900 a sample of the scenarios on MPI processes, held against the simulated lane"
  "lint    500 format, the rules of the tree, headers and clang-tidy on what changed and a sample"
  "asan    2000 AddressSanitizer and UBSan on the tests of tests/asan.txt"
  "tsan    700 ThreadSanitizer on the tests of tests/tsan.txt"
  "fuzz    1000 each fuzz target for 15 s under AddressSanitizer and UBSan"
  "bare    500 core alone without CUDA, NCCL and MPI, and its tests"
  "bundle  300 for three GPU architectures, what a bare GPU machine needs, tried elsewhere"
  "kernels 300 registers, spills and vector loads of each kernel for three GPU architectures"
  "interop 2200 real torch and Megatron-Core write and read, where they can be had"
  "package 900 what others install, tried in empty environments: a tarball, a wheel, a source distribution"
  "watch   300 'reprise watch' over training scripts and over copies with defects, where torch can be had"
  "trainers 700 real trainers as the job: our engine, torch, Megatron-Core, where they can be had"
)

# After these seconds CI starts nothing new, and stops what runs: the service that runs it would end it
# soon after, and nothing would be known. What matters most comes first.
readonly ci_seconds=4800

# What CI cuts short, whole; the same form.
readonly whole_stages=(
  "release_all 2400 release build and every case of every test"
  "asan_all 5400 clang build under AddressSanitizer and UBSan, every case of every test"
  "mpi_all  5400 every row of every scenario on MPI processes, held against the simulated lane"
  "tsan      800 ThreadSanitizer on the tests of tests/tsan.txt"
  "fuzz_long 4800 each fuzz target for 300 s under AddressSanitizer and UBSan"
  "headers   900 every header compiles alone"
  "tidy     9000 clang-tidy on every source"
)

# Cases that repeat one path: random scenarios, which the stage of the catalogue runs, pairs of
# layouts, which the nightly run has all of, and runs of `explore` beside two others. Of the scenarios on the model of a GPU, those under random
# schedules are left to the whole run, as are seven of eight flipped bits.
readonly release_left_out='RandomScenarios.*:Exhaust.loads_every_pair*:ExploreVerb.adds_its*:ExploreVerb.takes_cases*:ExploreVerb.findings_are*:MpiLane.random_scenarios*'
stage_release() {
  build_for_tests release || return 1
  # Some tests wait more than they compute, so one more than there are processors runs at a time.
  GTEST_FILTER="-$release_left_out" REPRISE_FLIPS_ONE_IN=8 \
    run_tests release -j $((jobs + 1)) -E '^test_models_scenarios_random$'
}
stage_release_all() { build_for_tests release && run_tests release; }
# Tests that repeat one path hundreds of times show nothing more here than a few of them; the release
# stage and the stage asan_all of './dev test --whole' have all.
readonly asan_left_out='CrashStates.*:Kills.at_every_call_of_two*:AtRest.every_byte*:KeptPlan.of_one_group*:KeptPlan.every_change*:ProtocolCrash.a_crash_while*:ProtocolCrash.a_protocol_in_a_wrong_order*:Store/CommitCrash.*/that_only_renames:Store/CommitCrash.*/without_rename:FaultOutcomes.of_a_crash*:Writers.two_*:RecordExchange.every_pair*:FaultOutcomes.of_every_call*:ProtocolCrash/Histories.*/1?:ProtocolCrash/Histories.*/1:ProtocolCrash/Histories.*/2:ProtocolCrash/Histories.*/3:ProtocolCrash/Histories.*/4:ProtocolCrash/Histories.*/5:ProtocolCrash/Histories.*/7:ProtocolCrash/Histories.*/8:ProtocolCrash/Histories.*/9'
stage_asan() { GTEST_FILTER="-$asan_left_out" REPRISE_PROPERTY_CASES=4 stage_of_list asan; }
stage_asan_all() { build_for_tests asan && run_tests asan; }
stage_bare() { build_for_tests bare && run_tests bare; }

# stage_of_list PRESET: builds and runs the executables of tests/PRESET.txt that exist here.
stage_of_list() {
  local preset="$1" targets pattern
  configure "$preset" || { record 0 1 0; return 1; }
  mapfile -t targets < <(grep -v '^#' "tests/$preset.txt" | grep -Fx -f "build/$preset/tests.txt")
  pattern="$(IFS='|'; printf '^(%s)$' "${targets[*]}")"
  build_for_tests "$preset" "${targets[@]}" && run_tests "$preset" -R "$pattern"
}
stage_tsan() { stage_of_list tsan; }

# fuzz_stage SECONDS: starts from real files only, not from inputs of earlier runs, so it is the
# same for each commit.
fuzz_stage() {
  local number name rc names
  mapfile -t names < <(fuzz_names)
  rm -f build/log/fuzz-*.ok
  build fuzz fuzz_all || { record 0 "${#names[@]}" 0; return 1; }
  number=$((16#$(tree_git rev-parse --short=7 HEAD 2>/dev/null || say 1)))
  rm -rf build/fuzz/corpus build/fuzz-found
  fuzz_run build/fuzz/corpus "$number" "$1" "${names[@]}"
  rc=$?
  for name in "${names[@]}"; do
    if [[ -f "build/log/fuzz-$name.ok" ]]; then record 1 0 0; else record 0 1 0; fi
  done
  return "$rc"
}
stage_fuzz() { fuzz_stage 15; }
stage_fuzz_long() { fuzz_stage 300; }

stage_interop() {
  local rc broken=0 run
  for run in interop_run interop_newest; do
    REPRISE_PYTHON_TESTS="$interop_python_few" "$run"
    rc=$?
    ((rc == 0 || rc == interop_not_run)) || broken=1
  done
  ((broken == 0))
}

stage_watch() {
  local rc
  watch_run
  rc=$?
  ((rc == interop_not_run)) || return "$rc"
}

stage_trainers() {
  local rc report=build/trainers dirty=()
  trainers_run "$report" --tag core
  rc=$?
  ((rc != interop_not_run)) || return 0
  [[ -n "${CI:-}" ]] || dirty=(--allow-dirty)
  checked build/release/reprise gate "$report" --lane program --baseline reports/baseline.json "${dirty[@]}" || rc=1
  return "$rc"
}

# checked COMMAND...: runs one check and counts it.
checked() {
  step "$*"
  if "$@"; then record 1 0 0; else record 0 1 0; return 1; fi
}

stage_catalogue() {
  local program=build/release/reprise report=build/catalogue broken=0 dirty=()
  rm -rf "$report"
  checked "$program" run scenarios --jobs "$jobs" --double --quiet --report "$report" || broken=1
  checked "$program" search properties --jobs "$jobs" --out build/found --report "$report" || broken=1
  checked "$program" mutants --rows 1 --property-cases 1 --jobs "$jobs" --quiet --report "$report" || broken=1
  [[ -n "${CI:-}" ]] || dirty=(--allow-dirty)
  checked "$program" gate "$report" --lane sim --baseline reports/baseline.json "${dirty[@]}" || broken=1
  ((broken == 0))
}

# mpi_stage REPORT [ARGUMENT...]
mpi_stage() {
  local program=build/release/reprise report="$1" broken=0 dirty=()
  shift
  rm -rf "$report"
  # Ranks wait more than they compute, so one scenario more than there are processors runs at a time.
  checked "$program" run scenarios --lane mpi --double --jobs $((jobs + 1)) --quiet --log info \
    --report "$report" "$@" || broken=1
  [[ -n "${CI:-}" ]] || dirty=(--allow-dirty)
  checked "$program" gate "$report" --lane mpi --baseline reports/baseline.json "${dirty[@]}" || broken=1
  ((broken == 0))
}
# Runs one row of each table, always the same ones.
stage_mpi() { mpi_stage build/mpi --rows 1; }
# The gate's baseline knows only the rows of the sample.
stage_mpi_all() {
  checked build/release/reprise run scenarios --lane mpi --double --jobs "$jobs" --quiet --report build/mpi-all
}

have_nvcc() { command -v nvcc >/dev/null || [[ -x "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" ]]; }

# Says so where there is no nvcc, since then no stage compiled anything of CUDA.
stage_bundle() {
  if ! have_nvcc; then
    say "bundle: not run: no nvcc; nothing of CUDA and NCCL was compiled"
    record 0 0 1
    return 0
  fi
  checked "$self" bundle
}

# checked_in_part COUNT COMMAND...: the same for a check of COUNT parts, one of which may say that it can't
# be had here.
checked_in_part() {
  local count="$1" rc=0
  shift
  step "$*"
  "$@" || rc=$?
  case "$rc" in
    0) record "$count" 0 0 ;;
    "$interop_not_run") record 1 0 1 ;;
    *) record 0 1 0 ;;
  esac
  ((rc == 0 || rc == interop_not_run))
}

stage_kernels() {
  if ! have_nvcc; then
    say "kernels: not run: no nvcc"
    record 0 0 1
    return 0
  fi
  checked_in_part 1 "$self" kernels
}

stage_package() { checked_in_part 3 "$self" package; }

stage_lint() { lint_within 90 || { record 0 1 0; return 1; }; }
stage_headers() { checked check_headers 0; }
stage_tidy() { checked check_tidy 0; }

stage_pid=""
stop_stage() {
  [[ -z "$stage_pid" ]] || kill "$stage_pid" 2>/dev/null
  exit 130
}

# Sets busy_seconds to the processor time of finished children. A subshell would have none.
count_busy_seconds() {
  times >build/log/times.txt
  busy_seconds="$(awk 'NR == 2 { gsub(/[ms]/, " "); print int($1 * 60 + $2 + $3 * 60 + $4) }' \
    build/log/times.txt)"
}

# failed_since FILE COUNT: true if a test failed since the file was written, or a check after the first
# COUNT results. A stage that is stopped can't say so itself.
failed_since() {
  [[ -n "$(find build/log -name 'ctest-*.log' -newer "$1" -exec grep -l '\*\*\*' {} +)" ]] ||
    tail -n "+$(($2 + 1))" build/results.txt | awk '$2 > 0 { failed = 1 } END { exit !failed }'
}

# run_stage NAME BUDGET LEFT WHAT: adds one line to the closing table; returns false if the stage failed. A
# stage that gets less than its budget, because only LEFT seconds are left of all, is not run or not
# finished, and says so.
run_stage() {
  local name="$1" budget="$2" left="$3" what="$4" began=$SECONDS before rc verdict=ok busy_seconds short=0
  local mark=build/log/stage-began results
  if ((left < budget)); then
    short=1 budget=$left
  fi
  if ((budget <= 0)); then
    say "### $name: not run: no time is left"
    record 0 0 1
    stage_table+="$(printf '%-9s not run: no time is left' "$name")"$'\n'
    return 0
  fi
  count_busy_seconds
  before=$busy_seconds
  : >"$mark"
  results="$(wc -l <build/results.txt)"
  printf '\n### %s: %s (budget %d s)\n' "$name" "$what" "$budget"
  timeout -k 15 "$budget" "$self" "stage_$name" &
  stage_pid=$!
  wait "$stage_pid"
  rc=$?
  stage_pid=""
  if (((rc == 124 || rc == 137) && SECONDS - began >= budget)); then
    if ((!short)); then
      say "### $name is over its budget of $budget s and was stopped"
      record 0 1 0
      verdict="over budget"
    elif failed_since "$mark" "$results"; then
      say "### $name: something failed before no time was left"
      record 0 1 0
      verdict="failed, and not finished: no time is left"
    else
      say "### $name: not finished: no time is left"
      record 0 0 1
      verdict="not finished: no time is left"
      rc=0
    fi
  elif ((rc == 137)); then
    say "### $name was killed"
    record 0 1 0
    verdict=killed
  elif ((rc != 0)); then
    verdict=failed
  fi
  count_busy_seconds
  stage_table+="$(printf '%-9s %5d s of %4d s, %5d s of processors  %s' "$name" \
    $((SECONDS - began)) "$budget" $((busy_seconds - before)) "$verdict")"$'\n'
  ((rc == 0))
}

# run_stages SECONDS "NAME BUDGET WHAT"...: runs one after another, all within SECONDS, then prints the
# table and the total.
run_stages() {
  local seconds="$1" line name budget what broken=0 began=$SECONDS
  shift
  stage_table=""
  mkdir -p build/log
  verb_setup --all || return 1
  begin_results
  trap stop_stage INT TERM
  for line in "$@"; do
    read -r name budget what <<<"$line"
    run_stage "$name" "$budget" $((seconds - (SECONDS - began))) "$what" || broken=1
  done
  printf '\n%s%-9s %5d s\n\n' "$stage_table" all $((SECONDS - began))
  print_total && ((broken == 0))
}

test_all() { run_stages "$ci_seconds" "${stages[@]}"; }
test_whole() { run_stages 86400 "${whole_stages[@]}"; }
