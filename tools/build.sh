# Configures and builds presets; sourced by ./dev.

# Prints compiler settings that replace the preset's where clang 14 is missing.
preset_overrides() {
  case "$1" in
    asan | tsan | fuzz)
      if ! command -v clang++-14 >/dev/null; then
        command -v clang++ >/dev/null || die "preset $1 needs clang: ./dev setup --all"
        say "-DCMAKE_C_COMPILER=clang"
        say "-DCMAKE_CXX_COMPILER=clang++"
      fi
      ;;
  esac
}

configure() {
  local preset="$1" overrides
  mapfile -t overrides < <(preset_overrides "$preset")
  if [[ -f "build/$preset/build.ninja" && "build/$preset/CMakeCache.txt" -nt CMakePresets.json ]]; then
    return 0
  fi
  step_timed "configuring $preset" "build/log/configure-$preset.log" \
    cmake --preset "$preset" "${overrides[@]}"
}

# compile PRESET [ARGUMENT...]: locks the preset, because two builds of it at once would damage each
# other.
compile() {
  local preset="$1"
  shift
  mkdir -p "build/$preset"
  (
    ! command -v flock >/dev/null || flock 9
    exec cmake --build "build/$preset" -j "$jobs" "$@"
  ) 9>"build/$preset/.lock"
}

# build PRESET [TARGET...]: shows ninja's progress at a terminal, and writes a log elsewhere.
build() {
  local preset="$1" began=$SECONDS targets=()
  shift
  (($# == 0)) || targets=(--target "$@")
  configure "$preset" || return 1
  if [[ ! -t 1 ]]; then
    step_timed "building $preset" "build/log/build-$preset.log" \
      compile "$preset" "${targets[@]}"
    return
  fi
  step "building $preset"
  compile "$preset" "${targets[@]}" || return 1
  say "    done in $((SECONDS - began)) s"
}

# verb_build [PRESET [TARGET...]]: builds everything of the preset, or only the targets.
verb_build() {
  local preset="${1:-release}"
  verb_setup || return 1
  build "$preset" "${@:2}"
}
