# Fuzzes the readers of untrusted bytes; sourced by ./dev.

# Keeps inputs that reached something new, across runs; './dev clean' does not remove them.
readonly fuzz_corpus=build/fuzz-corpus
# Limits of a target: exceeding one is a finding, like a crash.
readonly fuzz_limits=(-timeout=10 -rss_limit_mb=1024 -malloc_limit_mb=512)
# Prints the longest input; libFuzzer cuts longer ones, also seeds.
fuzz_longest() { case "$1" in metadata | torch_save) say 98304 ;; *) say 16384 ;; esac; }

fuzz_names() { printf '%s\n' tests/fuzz/*_fuzz.cpp | sed 's|.*/||; s|_fuzz\.cpp$||'; }

# fuzz_one CORPUS NUMBER SECONDS TARGET: called once per target, in parallel. NUMBER seeds the
# fuzzer. Prints how many inputs were tried and how much they reach; keeps a finding as a file.
fuzz_one() {
  local corpus="$1/$4" number="$2" seconds="$3" name="$4" rc found amiss dict=() kept=()
  local program="build/fuzz/fuzz_$4" log="build/log/fuzz-$4.log"
  local artifacts="build/fuzz-found/$4"
  mkdir -p "$corpus" "$artifacts" build/log
  rm -rf "build/fuzz/seeds/$name" "build/log/fuzz-$name.ok"
  [[ ! -f "tests/fuzz/$name.dict" ]] || dict=("-dict=tests/fuzz/$name.dict")
  [[ ! -d "tests/fuzz/regress/$name" ]] || kept=("tests/fuzz/regress/$name")
  "$program" --seeds "build/fuzz/seeds/$name" >"$log" 2>&1 &&
    ASAN_OPTIONS=quarantine_size_mb=32:detect_stack_use_after_return=0 \
      UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
      "$program" "$corpus" "build/fuzz/seeds/$name" "${kept[@]}" "${dict[@]}" \
      "${fuzz_limits[@]}" -max_len="$(fuzz_longest "$name")" -max_total_time="$seconds" -seed="$number" -print_final_stats=1 \
      -artifact_prefix="$artifacts/" >>"$log" 2>&1
  rc=$?
  say "    $name: $(fuzz_counts "$log")"
  amiss="$(fuzz_amiss "$name" "$log")"
  if ((rc == 0)) && [[ -n "$amiss" ]]; then
    say "    $name: $amiss; see $log"
    return 1
  fi
  if ((rc == 0)); then
    : >"build/log/fuzz-$name.ok"
    return 0
  fi
  grep -v '^#[0-9]' "$log" | tail -n 40
  found="$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)"
  say "    $name: a finding. Again: $program ${found:-"(none written; see $log)"}"
  say "    once it is mended keep it: mv ${found:-FILE} tests/fuzz/regress/$name/WHAT_IT_WAS"
  return 1
}

# Prints the counts at the end of libFuzzer's log.
fuzz_counts() {
  awk '/^#[0-9]+/ { for (i = 1; i < NF; ++i) { if ($i == "cov:") cov = $(i + 1)
                                               if ($i == "corp:") corpus = $(i + 1) } }
    /^stat::number_of_executed_units/ { runs = $2 }
    /^stat::average_exec_per_sec/ { speed = $2 }
    /^stat::peak_rss_mb/ { peak = $2 }
    END { printf "%d inputs (%d a second), %d branches, corpus %s, %d MiB at most", runs, speed,
                 cov, corpus, peak }' "$1"
}

# Prints why a run without a finding shows nothing; empty if it shows something.
fuzz_amiss() {
  local seeds="build/fuzz/seeds/$1" longest
  longest="$(fuzz_longest "$1")"
  if [[ -n "$(find "$seeds" -type f -size "+${longest}c" -print -quit)" ]]; then
    say "a seed is longer than the $longest bytes that fuzz_longest allows"
    return
  fi
  awk -v files="$(find "$seeds" -type f | wc -l)" '
    /^[0-9]+ seeds$/ { seeds = $1 }
    /^#[0-9]+/ { for (i = 1; i < NF; ++i) if ($i == "cov:") cov = $(i + 1) }
    /^stat::number_of_executed_units/ { runs = $2 }
    END {
      if (seeds + 0 == 0 || files != seeds) print "no seeds, or not all were written"
      else if (runs + 0 == 0) print "no input was run"
      else if (cov + 0 == 0) print "no branch was reached"
    }' "$2"
}

# fuzz_run CORPUS NUMBER SECONDS TARGET...: runs several at once; returns false if one found
# something.
fuzz_run() {
  local corpus="$1" number="$2" seconds="$3"
  shift 3
  step "fuzzing $# targets for $seconds s each (seed $number), corpus in $corpus"
  printf '%s\n' "$@" | xargs -n 1 -P "$jobs" "$self" fuzz_one "$corpus" "$number" "$seconds"
}

# Keeps in each corpus only inputs that reach something that the rest does not.
fuzz_minimize() {
  local name
  for name in "$@"; do
    [[ -d "$fuzz_corpus/$name" ]] || continue
    rm -rf "$fuzz_corpus/$name.new"
    mkdir -p "$fuzz_corpus/$name.new"
    step_timed "minimizing $fuzz_corpus/$name" "build/log/fuzz-merge-$name.log" \
      "build/fuzz/fuzz_$name" -merge=1 -rss_limit_mb=1024 "$fuzz_corpus/$name.new" "$fuzz_corpus/$name" || return 1
    rm -rf "${fuzz_corpus:?}/$name"
    mv "$fuzz_corpus/$name.new" "$fuzz_corpus/$name"
    say "    $(find "$fuzz_corpus/$name" -type f | wc -l) inputs are left"
  done
}

# verb_fuzz [TARGET...] [--seconds N] [--minimize]
verb_fuzz() {
  local seconds=600 minimize=0 names=()
  while (($# > 0)); do
    case "$1" in
      --seconds) seconds="${2:-}"; shift ;;
      --minimize) minimize=1 ;;
      -*) die "fuzz knows --seconds N and --minimize, not $1" ;;
      *)
        [[ -f "tests/fuzz/$1_fuzz.cpp" ]] || die "no target $1; there are: $(fuzz_names | xargs)"
        names+=("$1")
        ;;
    esac
    shift
  done
  [[ "$seconds" =~ ^[1-9][0-9]*$ ]] || die "--seconds wants a number"
  ((${#names[@]} > 0)) || mapfile -t names < <(fuzz_names)
  verb_setup --all && build fuzz fuzz_all || return 1
  fuzz_run "$fuzz_corpus" "$RANDOM" "$seconds" "${names[@]}" || return 1
  ((minimize == 0)) || fuzz_minimize "${names[@]}"
}
