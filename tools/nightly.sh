# Gathers the evidence of a night or a week in reports, and judges it; sourced by ./dev.
#
# To add a step, add a line to a list and a function stage_night_NAME, which returns an exit code of
# Reprise.

# name, time limit in seconds, description
readonly night_steps=(
  "build         900 the program"
  "catalogue     900 every scenario twice, random ones, the mutants"
  "exhaust      1800 every pair of layouts of 1 to 8 ranks"
  "mpi           500 a sample of the scenarios on MPI processes, each twice"
  "matrix       1500 every mutant in one row of each scenario file"
  "explore      1500 random scenarios for 20 minutes"
  "watch        4500 'reprise watch' over every script and every copy with a defect; callbacks of frameworks"
  "speed         900 no benchmark has lost 15 % of its ratio to its limit"
  "survival      900 a kill at each step of the saves of a PyTorch job, and ranks that fall apart"
  "table        4500 which of five pairs of releases reads what which of them wrote, or Reprise for it"
)
# A weekly run has what a nightly one has no time for.
readonly week_steps=(
  "build         900 the program"
  "hsdp         2400 the pairs with dp cut into replicate x shard, too"
  "shardings    2400 the pairs with each other sharding of the optimizer"
  "machine      5400 mutants of the engine that a machine made"
  "releases     3000 interop and the Megatron trainer with the newest releases, and pairs of releases"
  "pythons      3000 the Python package with four pairs of Python and torch"
  "changes      3000 each byte of real files replaced by each other: torch and Python agree with verify; forms of an optimizer"
)
# No step runs longer than these seconds after the start. The gate does, which takes a second.
readonly night_seconds=9000 week_seconds=9000
readonly explore_minutes=20
readonly mutation_least=95  # percent of the machine-made mutants that are not known to be equivalent

readonly not_run=3  # exit code: nothing failed, and something was not run or not decided
night_program=build/release/reprise

# worse CODE CODE: prints that of two exit codes which says more: a failure before "not run".
worse() {
  if (($1 == 0 || ($1 == not_run && $2 != 0))); then say "$2"; else say "$1"; fi
}

# each_of "COMMAND"...: runs all of them; returns the worst exit code.
each_of() {
  local command rc=0
  for command in "$@"; do
    step "$command"
    # The words are this file's own, and those of --report, which has no blanks.
    # shellcheck disable=SC2086
    $command
    rc="$(worse "$rc" $?)"
    say "$rc" >"$night_report/log/so-far"  # for a step that a signal ends
  done
  return "$rc"
}

stage_night_build() { build release reprise; }
# Begins the report of lane sim anew, so the steps that add to it have to run again.
stage_night_catalogue() {
  rm -f "$night_report"/passed/{exhaust,explore}
  each_of "$night_program run scenarios --jobs $jobs --double --quiet --report $night_report/sim" \
    "$night_program search properties --jobs $jobs --quiet --out $night_report/found --report $night_report/sim" \
    "$night_program mutants --jobs $jobs --quiet --report $night_report/sim"
}
# night_exhaust [ARGUMENT...]: adds pairs to the report.
night_exhaust() {
  each_of "$night_program search exhaust --jobs $jobs --quiet --report $night_report/sim $*"
}
stage_night_exhaust() { night_exhaust; }
stage_night_hsdp() { night_exhaust --hsdp; }
stage_night_shardings() {
  local sharding rc=0
  for sharding in dp_reshardable fully_sharded_model_space fsdp_dtensor; do
    night_exhaust --sharding "$sharding"
    rc="$(worse "$rc" $?)"
  done
  return "$rc"
}
stage_night_mpi() {
  each_of "$night_program run scenarios --lane mpi --rows 1 --double --jobs $jobs --quiet --report $night_report/mpi"
}
stage_night_watch() {
  local rc
  watch_run --all
  rc=$?
  ((rc == interop_not_run)) && return "$not_run"
  build_for_tests release reprise trainer_engine && interop_environment &&
    trainers_tests "$interop_env/bin/python" 'test_*.py' || rc=1
  return "$rc"
}
stage_night_speed() { verb_bench --guard; }
stage_night_survival() {
  build release reprise_library_c || return
  interop_environment || return
  REPRISE_KILLS_SAMPLE=1 REPRISE_PYTHON_TESTS="test_survival test_apart test_lives" interop_python "$interop_env"
}
# The matrix has a report of its own: a mutant that one row of each file misses is no failure of
# the catalogue, which is what the gate judges.
stage_night_matrix() {
  each_of "$night_program mutants --matrix --jobs $jobs --quiet --report $night_report/matrix --page $night_report/matrix.md"
}
stage_night_explore() {
  each_of "$night_program search explore --minutes $explore_minutes --jobs $jobs --quiet --report $night_report/sim"
}
# A run that is resumed after tests were added runs the survivors alone.
stage_night_machine() {
  local again=()
  ((!night_resumed)) || [[ ! -f "$night_report/mutation.json" ]] || again=(--again "$night_report/mutation.json")
  verb_mutation "${again[@]}" --seconds $((4800 * night_slow)) --least "$mutation_least" --out "$night_report/mutation.json"
}
stage_night_table() { releases_table; }
stage_night_releases() { build release reprise && interop_releases; }
stage_night_pythons() { interop_python_matrix; }
stage_night_changes() {
  build release reprise test_hostile && REPRISE_INTEROP_ALL=1 interop_run --only 'composed by hand|changed bytes|buckets become|loads what was made'
}
# Ends the running step; the steps after it are not run.
stop_night() {
  night_stopped=1
  [[ -z "$stage_pid" ]] || kill "$stage_pid" 2>/dev/null
}

# wait_for_step: returns the step's exit code, also if a signal ended the first wait.
wait_for_step() {
  local rc
  wait "$stage_pid"
  rc=$?
  while kill -0 "$stage_pid" 2>/dev/null; do
    wait "$stage_pid"
    rc=$?
  done
  stage_pid=""
  return "$rc"
}

# Prints a word for a step's exit code.
night_verdict() {
  case "$1" in
    0) say ok ;;
    "$not_run") say "not run, or not all of it" ;;
    124 | 137) say "FAILED: over its limit" ;;
    *) say "FAILED" ;;
  esac
}

# True if all steps that add to reports have passed at one commit. A report is of one commit, so a step
# that runs at another can't add to it.
night_reports_are_whole() {
  local line name commits=""
  for line in "${night_all[@]}"; do
    name="${line%% *}"
    [[ "$name" == build || "$name" == machine ]] && continue
    commits+="$(cut -d ' ' -f 1 "$night_report/passed/$name" 2>/dev/null || say none)"$'\n'
  done
  (($(sort -u <<<"${commits%$'\n'}" | wc -l) == 1)) && [[ "$commits" != none* ]]
}

# passed_before NAME: prints how many seconds the step took in the run that is resumed, and at which
# commit; fails if it did not pass there. A step counts also if only what it does not run has changed
# since: most run nothing but the program, and the machine-made mutants run the tests, too.
passed_before() {
  local commit="" seconds="" others=(':(exclude)tools' ':(exclude)docs' ':(exclude)*.md')
  ((night_resumed)) && [[ "$1" != build ]] || return 1
  read -r commit seconds 2>/dev/null <"$night_report/passed/$1"
  [[ -n "$seconds" ]] || return 1
  if [[ "$1" != machine && "$commit" != "$night_commit" ]]; then
    others+=(':(exclude)tests')
    night_reports_are_whole || return 1
  fi
  [[ "$commit" == "$night_commit" ]] ||
    tree_git diff --quiet "$commit" "$night_commit" -- . "${others[@]}" 2>/dev/null || return 1
  say "$seconds $commit"
}

# run_night_step NAME LIMIT LEFT WHAT: adds a line to the closing table, and the step's seconds to
# night_taken; returns the exit code.
run_night_step() {
  local name="$1" limit="$2" left="$3" what="$4" began=$SECONDS rc verdict earlier taken began_it=0 commit=$night_commit
  ((limit <= left)) || limit=$left
  rm -f "$night_report/log/so-far"
  if earlier="$(passed_before "$name")"; then
    rc=0 verdict="ok, in an earlier part of this run" commit="${earlier#* }" earlier="${earlier% *}"
    [[ "$commit" == "$night_commit" ]] || verdict+=", at ${commit:0:12} with the same program"
    # The reports are of the program that made them.
    [[ "$name" == machine || "$commit" == "$night_commit" ]] || night_of=(--commit "$commit")
  elif ((night_stopped || night_broken)); then
    verdict="not run: $( ((night_stopped)) && say interrupted || say "there is no program")"
    rc=$not_run
  elif ((limit <= 0)); then
    verdict="not run: no time is left"
    rc=$not_run
  else
    printf '\n### %s: %s (at most %d s)\n' "$name" "$what" "$limit"
    began_it=1
    timeout -k 15 "$limit" "$self" "stage_night_$name" > >(tee "$night_report/log/$name.log") 2>&1 &
    stage_pid=$!
    wait_for_step
    rc=$?
    verdict="$(night_verdict "$rc")"
  fi
  if ((night_stopped && began_it)); then
    rc="$(worse "$not_run" "$(cat "$night_report/log/so-far" 2>/dev/null || say 0)")"
    verdict="interrupted"
    ((rc == not_run)) || verdict="FAILED, then interrupted"
  fi
  taken="${earlier:-$((SECONDS - began))}"
  ((rc != 0)) || say "$commit $taken" >"$night_report/passed/$name"
  ((night_taken += taken))
  night_table+="$(printf '%-13s %6d s of %5d s  %s' "$name" "$taken" "$((limit > 0 ? limit : 0))" \
    "$verdict")"$'\n'
  return "$rc"
}

# night_gate POLICY: judges the reports of all lanes that the run has.
night_gate() {
  [[ -x "$night_program" ]] || { say "not run: there is no program to judge with"; return "$not_run"; }
  step "judging $night_report"
  "$night_program" gate "${night_lanes[@]}" "${night_of[@]}" --policy "$1" | tee "$night_report/gate.txt"
}

# run_night SECONDS STEP...: runs one step after another; sets night_rc and night_table.
run_night() {
  local seconds="$1" line name limit what
  shift
  for line in "$@"; do
    read -r name limit what <<<"$line"
    run_night_step "$name" $((limit * night_slow)) $((seconds - night_taken)) "$what"
    night_rc="$(worse "$night_rc" $?)"
    [[ "$name" != build || "$night_rc" == 0 ]] || night_broken=1  # an older program is no evidence
  done
}

# night_publish KIND: keeps the accepted reports in the tree: what they showed as a baseline, a page
# with commit, machine and durations, of a nightly run the matrix and the page of its report, and of a weekly run the
# rate of machine-made mutants.
night_publish() {
  local kind="$1" folder=reports/release
  mkdir -p "$folder"
  "$night_program" gate "${night_lanes[@]}" "${night_of[@]}" --write-baseline "$folder/$kind.json" >/dev/null || return 1
  {
    say "# What the $kind run of a release showed"
    printf '\n`./dev nightly%s --publish` wrote this page, and `%s.json` as its baseline.\n\n' \
      "$([[ "$kind" != weekly ]] || printf ' --weekly')" "$kind"
    say "| | |"
    say "|---|---|"
    say "| commit | $night_commit |"
    say "| program | $("$night_program" --version | head -n 1) |"
    say "| machine | $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores, $jobs jobs |"
    say "| ended | $(date -u +%FT%H:%MZ) |"
    say "| duration | $night_taken s |"
    printf '\n```\n%s```\n\nThe gate said:\n\n```\n' "$night_table"
    cat "$night_report/gate.txt"
    say '```'
  } >"$folder/$kind.md"
  case "$kind" in
    nightly)
      cp "$night_report/matrix.md" "$folder/matrix.md" || return 1
      cp "$night_report/sim/report.html" "$folder/report.html" || return 1
      ;;
    weekly) cp "$night_report/mutation.json" "$folder/mutation.json" || return 1 ;;
  esac
  say "wrote $folder/$kind.md, $folder/$kind.json and what belongs to them"
}

# verb_nightly [--weekly] [--report DIR] [--resume] [--slow N] [--publish] [STEP...]: exit codes 0 accepted, 1
# something failed or the gate refused, 2 wrong usage, 3 nothing failed and something was not run.
verb_nightly() {
  local seconds=$night_seconds all=("${night_steps[@]}") steps=() policy=reports/release-policy.yaml
  local names=() name line rc gate kind=nightly publish=0
  night_report="" night_slow=1 night_stopped=0 night_broken=0 night_rc=0 night_table="" night_resumed=0 night_taken=0
  while (($# > 0)); do
    case "$1" in
      --weekly)
        kind=weekly seconds=$week_seconds all=("${week_steps[@]}") policy=reports/weekly-policy.yaml
        ;;
      --slow)
        night_slow="${2:-}"
        [[ "$night_slow" =~ ^[1-9][0-9]?$ ]] || night_usage "--slow wants a number from 1 to 99"
        shift
        ;;
      --resume) night_resumed=1 ;;
      --publish) publish=1 ;;
      --report)
        night_report="${2:-}"
        [[ -n "$night_report" && "$night_report" != *[[:space:]]* ]] || night_usage "--report wants a directory without blanks"
        shift
        ;;
      -*) night_usage "nightly knows --weekly, --report DIR, --resume, --slow N and --publish, not $1" ;;
      *) names+=("$1") ;;
    esac
    shift
  done
  night_report="${night_report:-build/$kind}"
  night_lanes=("$night_report/sim")
  [[ "$kind" == weekly ]] || night_lanes+=("$night_report/mpi")
  for name in "${names[@]}"; do
    line="$(printf '%s\n' "${all[@]}" | awk -v name="$name" '$1 == name')"
    [[ -n "$line" ]] || night_usage "no step $name; there are: $(printf '%s\n' "${all[@]}" | awk '{ print $1 }' | xargs)"
    steps+=("$line")
  done
  ((${#names[@]} > 0)) || steps=("${all[@]}")
  ((!publish || ${#names[@]} == 0)) || night_usage "--publish needs every step: leave out $(say "${names[@]}")"
  night_commit="$(tree_git rev-parse HEAD)" || return 1
  night_of=() night_all=("${all[@]}")
  if [[ -n "$(tree_git status --porcelain)" ]]; then
    # Nobody can make the same again.
    ((!night_resumed && !publish)) || night_usage "the tree has changes: commit them before --resume or --publish"
    night_commit+="+changes"
  fi
  export night_report night_slow night_resumed
  verb_setup && mkdir -p "$night_report"/{log,passed} build/log || return 1
  # What an earlier night showed is no evidence of this one.
  if ((${#names[@]} == 0 && !night_resumed)); then
    rm -f "$night_report"/{sim,mpi,matrix}/{report.json,junit.xml,report.html,summary.md} \
      "$night_report"/{gate.txt,steps.txt,matrix.md,mutation.json} "$night_report"/sim/explored-*.yaml
    rm -rf "$night_report"/{found,passed}/*
  fi
  begin_results
  trap stop_night INT TERM
  run_night $((seconds * night_slow)) "${steps[@]}"
  rc=$not_run gate="not run: only some steps were named"
  if ((night_stopped)); then
    gate="not run: interrupted"
  elif ((night_broken)); then
    gate="not run: there is no program"
  elif ((${#names[@]} == 0)); then
    night_gate "$policy"
    rc=$?
    gate="refused or not run: see $night_report/gate.txt"
    ((rc != 0)) || gate=accepted
  fi
  night_table+="$(printf '%-13s %s' gate "$gate")"$'\n'
  night_rc="$(worse "$night_rc" "$rc")"
  ((night_rc == 0 || night_rc == not_run)) || night_rc=1
  printf '\n%s%-13s %6d s\n' "$night_table" all "$night_taken" | tee "$night_report/steps.txt"
  if ((publish && night_rc == 0)); then
    night_publish "$kind" || night_rc=1
  elif ((publish)); then
    say "nothing is published: not every step passed, or the gate did not accept"
  fi
  return "$night_rc"
}

night_usage() {
  printf 'dev: %s\n' "$*" >&2
  exit 2
}
