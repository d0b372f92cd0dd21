# Makes the bundle for a bare GPU machine; sourced by ./dev.

readonly bundle_kib_max=$((60 * 1024))
# Libraries that a bundle takes from its machine: the C library, the driver, NCCL.
readonly bundle_foreign='/(ld-linux-x86-64|lib(c|m|dl|rt|pthread|resolv|cuda|nccl))\.so[.0-9]*$'
# Open MPI's plugins that a bundle does not need: for networks, launchers, files, its own shared
# memory, windows, topologies and monitoring.
readonly bundle_no_plugin='((ucx|ofi|psm2?|openib|flux|romio321|jsm|gridengine|dbg_msgq)|mca_(atomic|memheap|scoll|spml|sshmem|fcoll|fbtl|fs|sharedfp|io|osc)_.*|mca_topo_treematch|mca_[a-z]+_monitoring)\.so$'

# Lists the programs for the bundle that the tree has.
bundle_programs() {
  say reprise
  say reprise-ranks
  grep -xE 'test_(gpu|nccl|mpi)' build/gpu/tests.txt
  [[ ! -f tests/bench/gpu_bench.cpp ]] || say bench_gpu
}

# bundle_libraries FILE...: prints "name path" of each shared library that the files need.
bundle_libraries() {
  local needs
  needs="$(LC_ALL=C ldd "$@")" || return 1
  if grep 'not found' <<<"$needs" >&2; then return 1; fi
  awk '$2 == "=>" { print $1, $3 }' <<<"$needs" | sort -u | grep -vE "$bundle_foreign"
}

openmpi_path() { ompi_info --parsable --path "$1" | cut -d : -f 3; }

# bundle_mpi DIR: copies Open MPI with its plugins, texts and settings.
bundle_mpi() {
  local dir="$1" plugin
  mkdir -p "$dir/mpi/plugins" "$dir/mpi/share" "$dir/mpi/etc"
  cp -L "$(command -v mpirun)" "$(openmpi_path bindir)/orted" "$dir/bin/" || return 1
  for plugin in "$(openmpi_path pkglibdir)"/*.so; do
    [[ "$plugin" =~ $bundle_no_plugin ]] || cp -L "$plugin" "$dir/mpi/plugins/" || return 1
  done
  cp "$(openmpi_path pkgdatadir)"/*.txt "$dir/mpi/share/" &&
    cp "$(openmpi_path sysconfdir)/openmpi-mca-params.conf" "$dir/mpi/etc/"
}

# bundle_fill DIR PROGRAM...
bundle_fill() {
  local dir="$1" program name path found
  shift
  rm -rf "$dir"
  mkdir -p "$dir/bin" "$dir/lib"
  for program in "$@"; do
    found="$(find build/gpu -maxdepth 2 -type f -name "$program" -perm -u+x)"
    strip -o "$dir/bin/$program" "$found" || return 1
  done
  bundle_mpi "$dir" || return 1
  while read -r name path; do
    cp -L "$path" "$dir/lib/$name" || return 1
  done < <(bundle_libraries "$dir"/bin/* "$dir"/mpi/plugins/*)
  bundle_libraries "$dir"/bin/* "$dir"/mpi/plugins/* >/dev/null || return 1  # its status was lost
  # Those of trainers run other programs, which a bundle does not have.
  find scenarios -path scenarios/trainers -prune -o -name '*.yaml' -exec cp --parents -t "$dir" {} +
  cp tests/bundle/run tests/bundle/gpu-check tests/bundle/torch_gpu.py tests/bundle/torch_trainer.py tests/bundle/README.md "$dir/"
  say "commit $(tree_git describe --always --dirty --abbrev=40 2>/dev/null)" >"$dir/commit.txt"
}

# bundle_strangers DIR LOG...: prints loaded libraries that neither the bundle has nor every
# machine.
bundle_strangers() {
  local dir="$1"
  shift
  sed -n 's/.*calling init: //p' "$@" | sort -u | grep -v "^$dir/" | grep -vE "$bundle_foreign"
}

# bundle_moved SCRATCH: runs a scenario on two processes with the bundle in another place, with an
# empty environment and without this machine's MPI; nothing that is installed here may be loaded. All
# scenarios must be without mistakes there.
bundle_moved() {
  local scratch="$1" moved="$1/moved" alone
  alone=(env -i PATH="$scratch/tools" LANG=C CUDA_VISIBLE_DEVICES= timeout -k 5 120)
  mkdir "$scratch/tools" "$scratch/loaded" && cp -r build/bundle "$moved" || return 1
  find -L /usr/bin -maxdepth 1 -type f ! -name 'mpi*' ! -name 'or*' ! -name 'om*' \
    ! -name 'nvidia-smi' -exec ln -s -t "$scratch/tools" {} + 2>/dev/null
  (
    cd / || exit 1
    "${alone[@]}" "$moved/run" env LD_DEBUG=libs LD_DEBUG_OUTPUT="$scratch/loaded/of" \
      reprise run "$moved/scenarios/placements/ep2.yaml" --lane mpi --quiet &&
      "${alone[@]}" "$moved/run" reprise run "$moved/scenarios" --tag gpu-shared --list &&
      "${alone[@]}" "$moved/gpu-check" "$scratch/out"
  ) || return 1
  if (($(grep -l 'initialize program: .*reprise' "$scratch"/loaded/of.* | wc -l) < 3)); then
    say "the scenario ran on fewer than two processes"
    return 1
  fi
  if bundle_strangers "$moved" "$scratch"/loaded/of.*; then
    say "these do not come from the bundle"
    return 1
  fi
}

bundle_check() {
  local scratch rc
  scratch="$(cd "$(mktemp -d)" && pwd -P)" || return 1
  bundle_moved "$scratch"
  rc=$?
  rm -rf "$scratch"
  return "$rc"
}

# Builds what runs on a bare GPU machine: build/bundle.
verb_bundle() {
  local programs kib
  verb_setup && configure gpu || return 1
  mapfile -t programs < <(bundle_programs)
  build gpu "${programs[@]}" || return 1
  step_timed "filling build/bundle: ${programs[*]}" build/log/bundle.log \
    bundle_fill build/bundle "${programs[@]}" || return 1
  kib="$(du -sk --apparent-size build/bundle | cut -f 1)"
  ((kib <= bundle_kib_max)) || die "build/bundle has $kib KiB, more than $bundle_kib_max"
  step_timed "trying it elsewhere ($kib KiB)" build/log/bundle-check.log bundle_check
}
