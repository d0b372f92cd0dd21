# Makes the table of releases, docs/releases.md, by running the real packages; sourced by ./dev.

# Python, torch, megatron-core and numpy of each row but the newest, which ./dev interop --releases installs, too.
# What reads flattened ranges, up to 0.15, needs numpy before 2.
readonly releases_pairs=("3.10 2.4.1 0.8.0 1.26.4" "3.10 2.7.1 0.12.3 1.26.4" "3.12 2.11.0 0.15.3 1.26.4" "3.12 2.14.1 0.18.2 2.4.6")
readonly releases_folder=build/release-table

# releases_environment NAME: sets interop_env. NAME is "newest" or an entry of releases_pairs. Status as
# interop_install. Megatron-Core comes without what it asks for, such as nvidia-modelopt, which a save does not need.
releases_environment() {
  local version torch mcore numpy python wanted=build/release-requirements.txt rc
  [[ "$1" != newest ]] || { interop_newest_environment; return; }
  read -r version torch mcore numpy <<<"$1"
  if ! python="$(python_of "$version")"; then
    interop_why="no Python $version here"
    return "$interop_not_run"
  fi
  printf '%s\n' "torch==$torch" "numpy==$numpy" \
    einops==0.8.2 psutil==7.2.2 packaging==26.3 pyyaml==6.0.4 >"$wanted"
  interop_env="${XDG_CACHE_HOME:-$HOME/.cache}/reprise/interop/release-torch-$torch-megatron-core-$mcore"
  interop_install "$interop_env" "$wanted" "$python" || return
  "$interop_env/bin/python" -m pip show --quiet "megatron-core" 2>/dev/null ||
    "$interop_env/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile --no-cache-dir --no-deps \
      "megatron-core==$mcore" >>build/log/interop-install.log 2>&1
}

# releases_each KEEP STEP NAME...: runs a step of release_table.py with each of these environments, one after
# the other. Each is removed afterwards unless KEEP is not empty; they have 5 GB each. What can't be had is not run.
releases_each() {
  local keep="$1" what="$2" name arguments rc broken=0 n=0
  shift 2
  for name in "$@"; do
    releases_environment "$name" || { rc=$?; interop_absent "the table of releases with $name" "$rc"; ((rc == interop_not_run)) || broken=1; continue; }
    arguments=("$what" "$releases_folder/written")
    [[ "$what" != read ]] || arguments+=("$releases_folder/answer-$((n++)).json")
    checked "$interop_env/bin/python" -W ignore tests/interop/release_table.py "${arguments[@]}" 2>>build/log/releases.log || broken=1
    [[ -n "$keep" || "$name" == newest ]] || rm -rf "$interop_env"
  done
  return "$broken"
}

# releases_table [--keep] [--write] [NAME...]: writes, lets Reprise rewrite, reads, and makes the page. NAME as for
# releases_environment; without one all. --write puts the page into docs; it needs all of them.
releases_table() {
  local keep="" page="$releases_folder/releases.md" names=() found broken=0
  while (($# > 0)); do
    case "$1" in
      --keep) keep=1 ;;
      --write) page=docs/releases.md ;;
      *) names+=("$1") ;;
    esac
    shift
  done
  ((${#names[@]} > 0)) || names=("${releases_pairs[@]}" newest)
  build_for_tests release reprise || return 1
  rm -rf "$releases_folder"
  mkdir -p "$releases_folder/written" build/log
  : >build/log/releases.log
  releases_each "$keep" write "${names[@]}" || broken=1
  found=("$releases_folder"/written/*)
  if [[ ! -d "${found[0]}" ]]; then
    say "the table of releases: not run: nothing was written"
    return "$interop_not_run"
  fi
  if [[ "$page" == docs/* ]] && ((${#found[@]} < 2 * (${#releases_pairs[@]} + 1))); then
    say "the table of releases: some releases can't be had here, so docs/releases.md stays as it is"
    page="$releases_folder/releases.md"
  fi
  checked python3 tests/interop/release_table.py reshard "$releases_folder/written" build/release/reprise \
    "${found[@]##*/}" || return 1
  releases_each "$keep" read "${names[@]}" || broken=1
  checked python3 tests/interop/release_table.py page "$releases_folder/written" build/release/reprise "$page" \
    "$releases_folder"/answer-*.json || broken=1
  say "the table of releases is in $page"
  return "$broken"
}
