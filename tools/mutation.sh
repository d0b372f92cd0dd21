# Machine-made mutants of core/; sourced by ./dev.

# verb_mutation [ARGUMENT...]: copies the tree with a switch at each decision of core/, builds the copy
# once, and runs a sample of the mutants. ARGUMENT as for tests/mutation/mutation.py.
#
# verb_mutation --adapters: writes the lists of the adapters' calls and of the tests that fail without
# each (tests/models/*/removed_calls.tsv). ctest checks them.
verb_mutation() {
  local tree=build/mutation/tree
  command -v python3 >/dev/null || die "./dev mutation needs python3: apt-get install python3"
  verb_setup || return 1
  if [[ "${1:-}" == --adapters ]]; then
    configure release || return 1
    step "leaving out each call of the adapters"
    compile release --target removed_calls
    return
  fi
  step "putting switches into a copy of core/"
  python3 tests/mutation/instrument.py . "$tree" || return 1
  step_timed "configuring the copy" build/log/configure-mutation.log \
    env -C "$tree" cmake --preset release || return 1
  # shellcheck disable=SC2046
  step_timed "building the copy" build/log/build-mutation.log \
    env -C "$tree" CCACHE_BASEDIR="$PWD/$tree" nice cmake --build build/release -j "$jobs" \
    --target $(python3 tests/mutation/mutation.py "$tree" --targets) || return 1
  step "running mutants"
  python3 tests/mutation/mutation.py "$tree" --jobs "$jobs" --out build/mutation/mutation.json "$@"
}
