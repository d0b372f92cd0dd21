# Runs the tree against real torch and Megatron-Core; sourced by ./dev.

# Seconds in which an environment has to be installed. It is 5 GB, of which a mirror sends 3; one that
# sends 4 MB a second needs 750 s.
readonly interop_install_seconds="${REPRISE_INSTALL_SECONDS:-900}"
readonly interop_earlier=(0.17.1 0.18.2)  # releases of Megatron-Core of which some cases ask
readonly interop_not_run=3  # exit status if its requirements are not available here
readonly interop_slow=build/interop-slow.txt  # what was not installed in time in this run of ./dev
# What CI runs of the Python package: one process, and some of each kind of several.
readonly interop_python_few='test_c test_one test_cuda.OnTheModel.test_saves_and_loads_both_ways_with_torch_on_the_cpu test_cuda.OnTheModel.test_calls_are_in_order_with_the_stream_of_torch test_cuda.OnThisMachine test_dcp.BitForBit test_dcp.Refusals test_dcp.Ranks test_ranks.Ranks.test_layouts_of_two_ranks test_ranks.Ranks.test_mistakes_of_one_rank test_ranks.Ranks.test_saves_in_two_threads test_megatron.Layouts test_megatron.Calls test_apart.Apart.test_a_rank_that_leaves_a_call test_survival test_values test_steps test_search test_moves test_processes test_wholes'
# What CI asks of the newest releases: a case of each direction.
readonly interop_few='torch writes (plain|fsdp2_model)|Reprise writes gpt-tiny fully_resh|Megatron writes (every_kind|its)'
interop_why=""
interop_env=""

# True if the package index answers a small request.
interop_index_answers() {
  local python="$1" log=build/log/interop-index.log scratch rc
  scratch="$(mktemp -d)"
  timeout -k 10 90 "$python" -m pip download --disable-pip-version-check --no-deps --no-cache-dir \
    --retries 1 --timeout 15 -d "$scratch" filelock==3.16.1 >"$log" 2>&1
  rc=$?
  rm -rf "$scratch"
  return "$rc"
}

# interop_install ENV REQUIREMENTS [PYTHON [BELOW]]: makes a virtual environment with these packages; a
# copy of the requirements marks it as complete. It takes 5 GB, since torch needs its GPU libraries, unless
# it also sees the packages of the environment BELOW, of which PYTHON is. Returns $interop_not_run if the
# tree is not at fault, 1 if the requirements can't be installed. What took too long once is not tried
# again in this run of ./dev.
interop_install() {
  local env="$1" wanted="$2" python="${3:-python3}" below="${4:-}" log=build/log/interop-install.log rc
  [[ -f "$env/complete" ]] && cmp -s "$wanted" "$env/complete" && return 0
  if grep -qFx "$env" "$interop_slow" 2>/dev/null; then
    interop_why="the packages did not install in $interop_install_seconds s before; REPRISE_INSTALL_SECONDS sets the limit"
    return "$interop_not_run"
  fi
  rm -rf "$env"
  mkdir -p "$(dirname "$env")" build/log
  if ! "$python" -c 'import ensurepip, venv' 2>/dev/null && ! install python3-venv; then
    interop_why="python3-venv could not be installed"
    return "$interop_not_run"
  fi
  step "installing $(grep -v '^#' "$wanted" | xargs) into $env"
  "$python" -m venv "$env" >"$log" 2>&1 || { interop_why="no virtual environment: $log"; return 1; }
  [[ -z "$below" ]] || printf '%s\n' "$below"/lib/python3*/site-packages >"$(printf '%s\n' "$env"/lib/python3*/site-packages)/below.pth"
  if ! interop_index_answers "$env/bin/python"; then
    rm -rf "$env"
    interop_why="the package index does not answer"
    return "$interop_not_run"
  fi
  timeout -k 10 "$interop_install_seconds" "$env/bin/python" -m pip install --quiet \
    --disable-pip-version-check --no-compile --no-cache-dir --retries 1 --timeout 15 \
    -r "$wanted" >>"$log" 2>&1
  rc=$?
  if ((rc == 0)); then
    cp "$wanted" "$env/complete"
    return 0
  fi
  rm -rf "$env"
  interop_why="the packages did not install: $(tail -n 1 "$log")"
  ((rc == 124 || rc == 137)) || return 1
  say "$env" >>"$interop_slow"
  interop_why="the packages did not install in $interop_install_seconds s; REPRISE_INSTALL_SECONDS sets the limit"
  return "$interop_not_run"
}

# Sets in the environment of the cases where an earlier torch is, or why there is none; what can't be had
# is a case that was not run. REPRISE_INTEROP_OLDER is a ready environment. Without this call there is no
# such case: CI holds by bytes what an earlier torch reads (tests/core/reshard).
interop_older() {
  local wanted=tests/interop/requirements-older.txt env="${REPRISE_INTEROP_OLDER:-}" rc=0
  if [[ -z "$env" ]]; then
    env="${XDG_CACHE_HOME:-$HOME/.cache}/reprise/interop/older-$(sed -n 's/^torch==/torch-/p' "$wanted")"
    interop_install "$env" "$wanted" || rc=$?
  fi
  unset REPRISE_INTEROP_OLDER_PYTHON REPRISE_INTEROP_OLDER_WHY
  if ((rc == 0)); then
    export REPRISE_INTEROP_OLDER_PYTHON="$env/bin/python"
  else
    export REPRISE_INTEROP_OLDER_WHY="$interop_why"
  fi
  ((rc == 0 || rc == interop_not_run))
}

# interop_cases ENV [ARGUMENT...]: runs the cases and counts them.
interop_cases() {
  local env="$1" log=build/log/interop.log began=$SECONDS
  shift
  build_for_tests release reprise reprise_library_c reprise_library_c_cuda_model || return 1
  step "torch, Megatron-Core and Reprise read each other, in $env"
  "$env/bin/python" tests/interop/interop.py --reprise build/release/reprise "$@" 2>&1 | tee "$log"
  record_log interop "$log" "${PIPESTATUS[0]}" "$began"
}

# interop_python ENV: the tests of the Python package; with REPRISE_PYTHON_TESTS these alone.
interop_python() {
  local env="$1" which=("discover tests/python" "discover tests/watch") tests words broken=0
  [[ -z "${REPRISE_PYTHON_TESTS:-}" ]] || which=("$REPRISE_PYTHON_TESTS")
  for tests in "${which[@]}"; do
    read -ra words <<<"$tests"
    checked env PYTHONPATH="$PWD/python:$PWD/tests/python:$PWD/tests/watch" \
      REPRISE_LIBRARY="$PWD/build/release/lib/libreprise_c.so" REPRISE_PROGRAM="$PWD/build/release/reprise" \
      "$env/bin/python" -W ignore -m unittest "${words[@]}" || broken=1
  done
  ((broken == 0))
}

# What the Python package is run with besides torch 2.15 on this machine's Python: Python and torch.
readonly interop_pythons=("3.9 2.4.1" "3.10 2.7.1" "3.12 2.11.0" "3.13 2.15.0")

# interop_python_matrix: the tests of the Python package with each pair. What can't be had is not run.
interop_python_matrix() {
  local pair version torch python env wanted=build/python-requirements.txt broken=0
  build_for_tests release reprise reprise_library_c || return 1
  for pair in "${interop_pythons[@]}"; do
    read -r version torch <<<"$pair"
    if ! python="$(python_of "$version")"; then
      say "Python $version with torch $torch: not run: no such Python here"
      record 0 0 1
      continue
    fi
    printf '%s\n' "torch==$torch" 'numpy<3' >"$wanted"
    env="${XDG_CACHE_HOME:-$HOME/.cache}/reprise/interop/python-$version-torch-$torch"
    if interop_install "$env" "$wanted" "$python"; then
      step "the Python package with Python $version and torch $torch"
      interop_python "$env" || broken=1
    else
      say "Python $version with torch $torch: not run: $interop_why"
      record 0 0 1
    fi
  done
  ((broken == 0))
}

# interop_in ENV [ARGUMENT...]: the cases, the Python package, and the trainer of the bundle, which a
# machine with a GPU runs there.
interop_in() {
  local env="$1" broken=0
  interop_cases "$@" || broken=1
  interop_python "$env" || broken=1
  checked "$env/bin/python" tests/bundle/torch_trainer.py --device cpu build/release/reprise || broken=1
  ((broken == 0))
}

# interop_environment [VERSION]: installs the packages if they are missing and sets interop_env, the
# environment that has them. Status as interop_install.
interop_environment() {
  local version="${1:-}" wanted=build/interop-requirements.txt
  interop_env="${REPRISE_INTEROP_ENV:-}"
  if [[ -n "$interop_env" ]]; then
    [[ -x "$interop_env/bin/python" ]] || die "$interop_env is no virtual environment"
    return 0
  fi
  mkdir -p build
  sed "s/^torch==.*/torch==${version:-$(sed -n 's/^torch==//p' tests/interop/requirements.txt)}/" \
    tests/interop/requirements.txt >"$wanted"
  interop_env="${XDG_CACHE_HOME:-$HOME/.cache}/reprise/interop/$(sed -n 's/^torch==/torch-/p' "$wanted")"
  interop_install "$interop_env" "$wanted"
}

# interop_absent NAME STATUS: tells and records that packages can't be had, or could not be installed. Returns
# the status, which interop_install gave.
interop_absent() {
  if (($2 == interop_not_run)); then
    say "$1: not run: $interop_why"
    record 0 0 1
  else
    say "$1: $interop_why"
    record 0 1 0
  fi
  return "$2"
}

# interop_run [--torch VERSION] [--env DIR] [ARGUMENT...], in any order. Where the packages can't be
# installed it runs nothing, says so, counts one as skipped, and returns $interop_not_run.
interop_run() {
  local version="" rest=()
  while (($# > 0)); do
    case "$1" in
      --torch) version="${2:?--torch wants a version}"; shift 2 ;;
      --env) REPRISE_INTEROP_ENV="${2:?--env wants a directory}"; shift 2 ;;
      *) rest+=("$1"); shift ;;
    esac
  done
  interop_environment "$version" || { interop_absent interop $?; return; }
  interop_in "$interop_env" "${rest[@]}"
}

# interop_on_release PYTHON [FOLDER]: the cases of releases.py, with the Megatron-Core of a folder.
interop_on_release() {
  local python="$1" folder="${2:-}"
  checked env ${folder:+PYTHONPATH="$folder"} "$python" tests/interop/releases.py --reprise build/release/reprise
}

# Prints where the environment with the newest releases is, if there is one.
interop_newest_path() {
  say "${XDG_CACHE_HOME:-$HOME/.cache}/reprise/interop/newest-$(sed -n 's/^megatron-core==/megatron-core-/p' tests/interop/requirements-newest.txt)"
}

# Installs the newest releases and sets interop_env. Status as interop_install; what was not run or
# failed is recorded.
interop_newest_environment() {
  local python rc wanted=tests/interop/requirements-newest.txt
  if python="$(python_of 3.12 3.13)"; then  # Megatron-Core after 0.16 needs one of these
    interop_env="$(interop_newest_path)"
    interop_install "$interop_env" "$wanted" "$python" && return 0
    rc=$?
  else
    interop_why="no Python 3.12 or 3.13 here, which Megatron-Core needs from 0.17 on"
    rc=$interop_not_run
  fi
  interop_absent "interop: the newest releases" "$rc"
}

# interop_forwards ENV: what transformers computes from checkpoints of this environment's Megatron-Core that
# were exported. transformers is in an environment of its own on top.
interop_forwards() {
  local below="$1" env="$1-forwards" wanted=tests/interop/requirements-forwards.txt log=build/log/interop-forwards.log began
  interop_install "$env" "$wanted" "$below/bin/python" "$below" || { interop_absent "interop: transformers" $?; return; }
  build_for_tests release reprise || return 1
  step "Megatron-Core and transformers compute the same, in $env"
  began=$SECONDS
  "$env/bin/python" -W ignore tests/interop/forwards.py --reprise build/release/reprise 2>&1 | tee "$log"
  record_log interop-forwards "$log" "${PIPESTATUS[0]}" "$began"
}

# The same with both Megatron-Cores.
interop_forwards_all() {
  local broken=0
  interop_environment || { interop_absent interop $?; return; }
  interop_forwards "$interop_env" || (($? == interop_not_run)) || broken=1
  interop_newest_environment || return
  interop_forwards "$interop_env" || (($? == interop_not_run)) || broken=1
  ((broken == 0))
}

# What CI runs with the newest releases: a few cases, what transformers computes, and the cases whose
# verdict differs from release to release.
interop_newest() {
  local env rc=0
  interop_newest_environment || return
  env="$interop_env"
  interop_cases "$env" --only "$interop_few" || rc=1
  interop_forwards "$env" || (($? == interop_not_run)) || rc=1
  interop_on_release "$env/bin/python" || rc=1
  releases_table newest || rc=1
  return "$rc"
}

# Runs every case, and every scenario of the trainer megatron, with the newest releases and an earlier
# torch; then those cases whose verdict differs from release to release with each of them.
interop_releases() {
  local env version broken=0
  interop_newest_environment || return
  env="$interop_env"
  "$env/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile --no-cache-dir \
    -r tests/interop/requirements-titan.txt || { record 0 1 0; return 1; }
  interop_older || { say "interop: an earlier torch: $interop_why"; record 0 1 0; return 1; }
  interop_in "$env" || broken=1
  interop_forwards "$env" || (($? == interop_not_run)) || broken=1
  interop_on_release "$env/bin/python" || broken=1
  for version in "${interop_earlier[@]}"; do
    [[ -d "$env/releases/$version" ]] ||
      "$env/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile --no-cache-dir --no-deps \
        --target "$env/releases/$version" "megatron-core==$version" || { record 0 1 0; return 1; }
    interop_on_release "$env/bin/python" "$env/releases/$version" || broken=1
  done
  { interop_environment && interop_forwards "$interop_env"; } || (($? == interop_not_run)) || broken=1
  rm -rf build/trainers-newest
  checked env REPRISE_PYTHON="$env/bin/python" build/release/reprise run scenarios/trainers/megatron-*.yaml \
    --lane program --quiet --jobs "$jobs" --report build/trainers-newest || broken=1
  ((broken == 0))
}

verb_interop() {
  local rc run=interop_run
  case "${1:-}" in
    --releases) run=interop_releases; shift ;;
    --pythons) run=interop_python_matrix; shift ;;
    --forwards) run=interop_forwards_all; shift ;;
    --table) run=releases_table; shift ;;
  esac
  verb_setup || return 1
  begin_results
  if [[ -n "${REPRISE_INTEROP_OLDER:-}" ]]; then interop_older; fi
  "$run" "$@"
  rc=$?
  print_total
  return "$rc"
}
