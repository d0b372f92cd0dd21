# Runs the benchmarks; sourced by ./dev.


# bench_one NAME [ARGUMENT...]
bench_one() {
  local name="$1" rc
  shift
  step "bench_$name"
  "build/release/bench/bench_$name" "$@"
  rc=$?
  ((rc == 0 || rc == bench_not_run))
}

# Lists the benchmarks that have limits or aims; their results are published.
readonly benches_published=(save load reshard compare digest verbs round_trip plan_scale)
bench_filter() {
  case "$1" in
    round_trip) say 'round_trips|plans_only' ;;
    compare) say '/(float64|float32|bfloat16|float8_e4m3fn|complex64)/' ;;
    *) say . ;;
  esac
}

# Those whose rows have limits that are measured in turns with them.
readonly benches_guarded=(save load reshard compare digest verbs)

# bench_guard [--write]: fails if a row lost 15 % of its ratio to its limit.
bench_guard() {
  local name
  command -v python3 >/dev/null || die "--guard needs python3: apt-get install python3"
  for name in "${benches_guarded[@]}"; do
    bench_one "$name" --benchmark_filter="$(bench_filter "$name")" \
      --benchmark_out="build/bench/$name.json" --benchmark_out_format=json || return 1
  done
  step "held against tests/bench/ratios.tsv"
  python3 tests/bench/guard.py build/bench tests/bench/ratios.tsv "$@"
}

# Prints where the environment with torch is, if there is one.
interop_path() {
  say "${XDG_CACHE_HOME:-$HOME/.cache}/reprise/interop/$(sed -n 's/^torch==/torch-/p' tests/interop/requirements.txt)"
}

# bench_beside ENV NAME [ROW...]: the comparison with the packages of an environment, as
# build/bench/NAME.json.
bench_beside() {
  local env="$1" out="build/bench/$2.json"
  shift 2
  "$env/bin/python" tests/interop/beside_torch.py build/release/bench/bench_beside_torch \
    build/release/reprise "$out" "$@" 2>build/log/beside-torch.log ||
    { tail -n 20 build/log/beside-torch.log; return 1; }
}

# bench_beside_torch [ROW...]: runs the comparison with PyTorch; without its environment it says so
# and runs nothing. Manifests are compared with the newest Megatron-Core, where that is installed,
# because the other has none.
bench_beside_torch() {
  local env="${REPRISE_INTEROP_ENV:-}" newest
  [[ -n "$env" ]] || env="$(interop_path)"
  newest="$(interop_newest_path)"
  step "beside PyTorch"
  rm -f build/bench/beside_torch*.json  # an earlier run's results are not this one's
  if [[ ! -x "$env/bin/python" ]]; then
    say "    not run: no environment; ./dev interop makes it"
    return 0
  fi
  bench_beside "$env" beside_torch "$@" || return 1
  [[ " ${*:-manifest} " == *" manifest "* && -x "$newest/bin/python" && ! "$env" -ef "$newest" ]] || return 0
  bench_beside "$newest" beside_torch_newest manifest
}

# bench_python [ARGUMENT...]: writes the page of the Python package. PYTHONPATH names peers, if any.
bench_python() {
  local out
  out="reports/bench/python-$(date +%F)"
  build release reprise_library_c && interop_environment || { say "    not run: $interop_why"; return 1; }
  PYTHONPATH="$PWD/python:$PWD/tests/bench:${PYTHONPATH:-}" REPRISE_LIBRARY="$PWD/build/release/lib/libreprise_c.so" \
    "$interop_env/bin/python" tests/bench/python_beside.py "$out" "$@"
}

# bench_curves [ARGUMENT...]: how time and memory grow with tensors, files, objects and ranks.
bench_curves() {
  local python="${REPRISE_INTEROP_ENV:-}"
  command -v python3 >/dev/null || die "--curves needs python3: apt-get install python3"
  [[ -n "$python" ]] || python="$(interop_path)"
  python+=/bin/python
  [[ -x "$python" ]] || python=python3
  step "how time and memory grow"
  "$python" tests/bench/curves.py build/release/reprise "reports/bench/curves-$(date +%F)" "$@"
}

# bench_seconds FILE NAME AIM COMMAND...: times a command of the program, as a benchmark with an aim in seconds.
bench_seconds() {
  local file="$1" name="$2" aim="$3" begin rc
  shift 3
  step "$*"
  begin="$(date +%s.%N)"
  "$@" >"build/log/bench-$name.log" 2>&1
  rc=$?
  ((rc == 0)) || { tail -n 20 "build/log/bench-$name.log"; return 1; }
  awk -v name="$name" -v begin="$begin" -v end="$(date +%s.%N)" -v aim="$aim" 'BEGIN {
    printf "{\"benchmarks\": [{\"name\": \"%s\", \"run_type\": \"iteration\", \"seconds\": %.1f, \"aim_seconds\": %d}]}\n",
      name, end - begin, aim }' >"$file"
}

# bench_profile NAME COMMAND...: where the CPU time of a command goes, as build/bench/NAME.profile, for the row NAME
# ("-" for "/"). There is none without perf, or where perf sees nothing of the kernel: its shares would be wrong.
bench_profile() {
  local out="build/bench/$1"
  shift
  step "perf of $*"
  if ! perf record -q -F 499 -o "$out.perf" ${bench_pipes:+--delay=-1 --control="fifo:$bench_pipes"} -- "$@" >build/log/perf.log 2>&1; then
    say "    not run: $(tail -n 1 build/log/perf.log)"
  elif perf evlist -i "$out.perf" | grep -q ':[A-Za-z]*u'; then
    say "    not run: perf may not look into the kernel; run as root, or set kernel.perf_event_paranoid to 1"
  else
    perf report -i "$out.perf" --stdio --no-children -F overhead,dso,sym 2>/dev/null | grep -v '^#' >"$out.profile"
  fi
  rm -f "$out.perf"
}

# bench_profile_row NAME BENCH FILTER: the same for rows of a benchmark that takes turns with others: ours alone.
bench_profile_row() {
  local bench_pipes=build/bench/perf-control,build/bench/perf-ack
  rm -f "${bench_pipes%,*}" "${bench_pipes#*,}"
  mkfifo "${bench_pipes%,*}" "${bench_pipes#*,}" || return 1
  REPRISE_PERF="$bench_pipes" bench_profile "$1" "build/release/bench/bench_$2" --benchmark_filter="$3"
  rm -f "${bench_pipes%,*}" "${bench_pipes#*,}"
}

# Where the CPU time of rows goes that no limit or bare work explains.
bench_profiles() {
  local row
  for row in small small_crc32; do bench_profile_row "warm_load-$row" load "^warm_load/$row/"; done
  for row in given_rows_of_512_shapes given_bricks; do
    bench_profile_row "save_2048_ranks_512_tensors-$row" plan_scale "/$row/"
  done
  for row in small small_again; do bench_profile_row "save_to_memory-$row" save "^save_to_memory/$row/"; done
  bench_profile_row diff-large verbs '^diff/large/'
  bench_profile_row digest_of_files-bfloat16 verbs '^digest_of_files/bfloat16/'
  for row in round_trips/twenty_tensors plans_only; do
    bench_profile "${row//\//-}" build/release/bench/bench_round_trip --benchmark_filter="^$row/.*threads:2"
  done
  bench_profile all_scenarios build/release/reprise run scenarios --shard 1/8 --jobs "$jobs" --quiet
  bench_profile a_tenth_of_all_pairs_of_layouts build/release/reprise search exhaust --shard 1/100 --jobs "$jobs" --quiet
}

# Runs all published benchmarks and writes a page under reports/bench. Python renders it; nothing
# else here needs Python.
bench_publish() {
  local name
  command -v python3 >/dev/null || die "--publish needs python3: apt-get install python3"
  rm -f build/bench/*.json
  cut -d ' ' -f 1-3 /proc/loadavg >build/bench/load_before.txt
  say "load averages before the run: $(<build/bench/load_before.txt)"
  for name in "${benches_published[@]}"; do
    bench_one "$name" --benchmark_filter="$(bench_filter "$name")" \
      --benchmark_out="build/bench/$name.json" --benchmark_out_format=json || return 1
  done
  bench_seconds build/bench/catalogue.json all_scenarios 45 \
    build/release/reprise run scenarios --jobs "$jobs" --quiet || return 1
  # All pairs are to take 5 minutes.
  bench_seconds build/bench/exhaust.json a_tenth_of_all_pairs_of_layouts 30 \
    build/release/reprise search exhaust --shard 1/10 --jobs "$jobs" --quiet || return 1
  bench_profiles
  bench_beside_torch || return 1
  python3 tests/bench/publish.py build/bench reports/bench
}

# verb_bench [--python [ARGUMENT...] | --curves [ARGUMENT...] | --publish | --guard [--write] | --beside-torch [ROW...] | ARGUMENT...]
verb_bench() {
  local bench targets
  if [[ "${1:-}" == --python ]]; then
    shift
    verb_setup && bench_python "$@"
    return
  fi
  if [[ "${1:-}" == --curves ]]; then
    shift
    verb_setup && build release reprise && bench_curves "$@"
    return
  fi
  mapfile -t targets < <(printf '%s\n' tests/bench/*_bench.cpp | sed 's|.*/|bench_|; s|_bench\.cpp$||')
  verb_setup && build release reprise "${targets[@]}" || return 1
  rm -rf build/bench
  mkdir -p build/bench build/log
  case "${1:-}" in
    --publish) bench_publish; return ;;
    --guard) shift; bench_guard "$@"; return ;;
    --beside-torch) shift; bench_beside_torch "$@"; return ;;
  esac
  for bench in build/release/bench/bench_*; do
    [[ "$bench" != *_beside_torch ]] || continue  # does nothing by itself
    bench_one "${bench##*/bench_}" "$@" || return 1
  done
}
