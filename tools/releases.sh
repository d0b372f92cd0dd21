# Makes the table of releases, docs/releases.md, by running the real packages; sourced by ./dev.

# Python, torch, megatron-core and numpy of each row but the newest, which ./dev interop --releases installs, too.
# What reads flattened ranges, up to 0.15, needs numpy before 2.
readonly releases_pairs=("3.10 2.4.1 0.8.0 1.26.4" "3.10 2.7.1 0.12.3 1.26.4" "3.12 2.11.0 0.15.3 1.26.4" "3.12 2.14.1 0.18.2 2.4.6")
readonly releases_folder=build/release-table

# releases_environment NAME: sets interop_env. NAME is "newest" or an entry of releases_pairs. Status as
# interop_install. Megatron-Core comes without what it asks for, such as nvidia-modelopt, which a save does not need.
releases_environment() {
  local version torch mcore numpy python wanted=build/release-requirements.txt
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
  "$interop_env/bin/python" -m pip show --quiet megatron-core 2>/dev/null ||
    timeout 300 "$interop_env/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile \
      --no-cache-dir --no-deps --retries 2 "megatron-core==$mcore" >>build/log/interop-install.log 2>&1 && return
  interop_why="megatron-core $mcore can't be installed (build/log/interop-install.log)"
  return "$interop_not_run"
}

# releases_table [--write] [newest]: each pair of releases writes, Reprise rewrites, each reads, and the answers
# make the page. With "newest" only the newest pair. --write puts the page into docs; it needs all pairs. The
# environments are kept. A pair that can't be had is not run.
releases_table() {
  local page="$releases_folder/releases.md" names=("${releases_pairs[@]}" newest) name rc absent=0 broken=0 n=0
  local found pythons=()
  while (($# > 0)); do
    case "$1" in
      --write) page=docs/releases.md ;;
      newest) names=(newest) ;;
      *) die "interop --table knows --write, not $1" ;;
    esac
    shift
  done
  build_for_tests release reprise || return 1
  rm -rf "$releases_folder"
  mkdir -p "$releases_folder/written" build/log
  for name in "${names[@]}"; do
    if releases_environment "$name"; then
      pythons+=("$interop_env/bin/python")
      continue
    else
      rc=$?
    fi
    absent=1
    ((rc == interop_not_run)) || broken=1
    [[ "$name" == newest ]] || interop_absent "the table of releases with $name" "$rc"  # newest has told it
  done
  ((${#pythons[@]} > 0)) || return "$((broken ? 1 : interop_not_run))"
  for name in "${pythons[@]}"; do
    checked "$name" -W ignore tests/interop/release_table.py write "$releases_folder/written" 2>>build/log/releases.log || broken=1
  done
  found=("$releases_folder"/written/*)
  checked python3 tests/interop/release_table.py reshard "$releases_folder/written" build/release/reprise \
    "${found[@]##*/}" || return 1
  for name in "${pythons[@]}"; do
    checked "$name" -W ignore tests/interop/release_table.py read "$releases_folder/written" \
      "$releases_folder/answer-$((n++)).json" 2>>build/log/releases.log || broken=1
  done
  if ((absent)) && [[ "$page" == docs/* ]]; then
    say "the table of releases: some releases can't be had here, so docs/releases.md stays as it is"
    page="$releases_folder/releases.md"
  fi
  checked python3 tests/interop/release_table.py page "$releases_folder/written" build/release/reprise "$page" \
    "$releases_folder"/answer-*.json || broken=1
  say "the table of releases is in $page"
  ((!broken)) || return 1
  ((!absent)) || return "$interop_not_run"
}
