# Runs `reprise watch` over training scripts as their authors wrote them, and over copies with defects;
# sourced by ./dev.

# watch_environments [all]: sets watch_environments to the options that name the environments which are here:
# torch with Megatron-Core 0.16.1; for all cases also the frameworks, and the newest Megatron-Core. Status as
# interop_install.
watch_environments() {
  local frameworks="${XDG_CACHE_HOME:-$HOME/.cache}/reprise/watch/frameworks"
  interop_environment || return
  watch_environments=(--environment "torch=$interop_env")
  [[ "${1:-}" == all ]] || return 0
  interop_install "$frameworks" tests/watch/requirements.txt "$interop_env/bin/python" "$interop_env" || return
  watch_environments+=(--environment "frameworks=$frameworks")
  ! interop_newest_environment || watch_environments+=(--environment "newest=$interop_env")
}

# watch_run [--all] [ARGUMENT...]: the cases that CI has, or all, or those that are named. Where the packages
# can't be installed it runs nothing, and returns $interop_not_run.
watch_run() {
  local which=(--core) log=build/log/watch.log began=$SECONDS watch_environments=()
  (($# == 0)) || which=(all)
  [[ "${1:-}" != --all ]] || shift
  watch_environments "${which[@]}" || { interop_absent watch $?; return; }
  [[ "${which[*]}" == --core ]] || which=()
  build_for_tests release reprise reprise_library_c || return 1
  step "reprise watch over training scripts"
  REPRISE_LIBRARY="$PWD/build/release/lib/libreprise_c.so" python3 tests/watch/run.py --reprise build/release/reprise \
    "${watch_environments[@]}" "${which[@]}" "$@" 2>&1 | tee "$log"
  record_log watch "$log" "${PIPESTATUS[0]}" "$began"
}

verb_watch() {
  local rc
  verb_setup || return 1
  begin_results
  watch_run "$@"
  rc=$?
  print_total
  return "$rc"
}
