# Runs tests and counts their cases; sourced by ./dev.

# Prints "passed failed skipped" of the cases in a GoogleTest XML report, from its first element.
sum_report() {
  local all=0 failed=0 disabled=0 errors=0 skipped
  read -r all failed disabled errors < <(sed -n \
    's/^<testsuites tests="\([0-9]*\)" failures="\([0-9]*\)" disabled="\([0-9]*\)" errors="\([0-9]*\)".*/\1 \2 \3 \4/p' "$1")
  skipped=$((disabled + $(grep -c '<skipped' "$1")))
  failed=$((failed + errors))
  say "$((all - failed - skipped)) $failed $skipped"
}

# Prints the ctest tests of a JUnit file as "name status", one per line.
ctest_results() {
  sed -n 's/.*<testcase name="\([^"]*\)".* status="\([^"]*\)".*/\1 \2/p' "$1"
}

# count_tests PRESET JUNIT: prints "passed failed skipped" over all cases. An executable that failed
# without a failed case in its report (a crash, a timeout, a leak at exit) counts as one failure, as
# does one that ran no case, since all of them use GoogleTest.
count_tests() {
  local preset="$1" junit="$2" passed=0 failed=0 skipped=0 name status p f s report
  while read -r name status; do
    report="build/$preset/test-reports/$name.xml"
    p=0 f=0 s=0
    [[ ! -f "$report" ]] || read -r p f s < <(sum_report "$report")
    if [[ "$status" != run ]] && ((f == 0)); then
      say "    $name ended without a failed case (crash, timeout, leak?): build/$preset/$name" >&2
      f=1
    fi
    if [[ "$status" == run ]] && ((p + f + s == 0)); then
      say "    $name ran no case: build/$preset/$name" >&2
      f=1
    fi
    ((passed += p, failed += f, skipped += s))
  done < <(ctest_results "$junit")
  say "$passed $failed $skipped"
}

# Adds "passed failed skipped" to this run's results.
record() { printf '%s %s %s\n' "$1" "$2" "$3" >>build/results.txt; }

# record_log NAME LOG STATUS BEGAN: says and records the counts with which a log ends, as "2 passed, 0 failed,
# 0 skipped". A run that failed without a failure ended early, or ran nothing.
record_log() {
  local passed failed skipped
  read -r passed failed skipped < <(
    sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped.*/\1 \2 \3/p' "$2")
  (($3 == 0 || ${failed:-0} > 0)) || failed=1
  record "${passed:-0}" "${failed:-1}" "${skipped:-0}"
  say "    $1: ${passed:-0} passed, ${failed:-1} failed in $((SECONDS - $4)) s"
  ((${failed:-1} == 0))
}

# run_tests PRESET [CTEST-ARGUMENT...]: runs the tests that are built and records the counts.
run_tests() {
  local preset="$1" junit="$PWD/build/$1/ctest.xml" began=$SECONDS rc passed failed skipped
  shift
  rm -f "$junit" "build/$preset/test-reports/"*.xml
  step "testing $preset"
  mkdir -p build/log
  ctest --test-dir "build/$preset" -j "$jobs" --no-tests=error --output-on-failure \
    --test-output-size-failed 200000 --output-junit "$junit" "$@" |
    tee "build/log/ctest-$preset.log" |
    sed -e '/^Internal ctest/d' -e '/^Label Time Summary/,/^$/d' -e '/^$/d'
  rc=${PIPESTATUS[0]}
  if [[ ! -f "$junit" ]]; then
    record 0 1 0
    return 1
  fi
  read -r passed failed skipped < <(count_tests "$preset" "$junit")
  if ((rc != 0 && failed == 0)); then
    failed=1
  fi
  record "$passed" "$failed" "$skipped"
  say "    $preset: $passed passed, $failed failed, $skipped skipped in $((SECONDS - began)) s"
  ((failed == 0))
}

# build_for_tests PRESET [TARGET...]: builds; a build that fails counts as one failure.
build_for_tests() {
  build "$@" && return 0
  record 0 1 0
  return 1
}

# Prints the last line of ./dev test; returns its exit status.
print_total() {
  local passed=0 failed=0 skipped=0 p f s tail=""
  while read -r p f s; do
    ((passed += p, failed += f, skipped += s))
  done <build/results.txt
  ((skipped == 0)) || tail=", $skipped skipped"
  say "$passed passed, $failed failed$tail"
  ((failed == 0 && passed > 0))
}

begin_results() {
  mkdir -p build
  : >build/results.txt
  rm -f "$interop_slow"
}

# verb_test [--all|--whole] [CTEST-ARGUMENT...]
verb_test() {
  case "${1:-}" in
    --all) test_all; return ;;
    --whole) test_whole; return ;;
  esac
  verb_setup || return 1
  begin_results
  if build_for_tests release; then
    run_tests release "$@"
  fi
  print_total
}
