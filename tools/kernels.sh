# The table of what the compiler makes of each kernel; sourced by ./dev.

readonly kernels_tools=build/kernels-tools

# Sets kernels_cuobjdump to a program that shows machine code: one of the toolkit, or one of NVIDIA's
# Python packages. Empty where there is none to be had.
kernels_cuobjdump=""
kernels_find_cuobjdump() {
  local found packages=("nvidia-cuda-cuobjdump>=13.0" "nvidia-cuda-nvdisasm>=13.0")
  if found="$(PATH="$PATH:${CUDA_HOME:-/usr/local/cuda}/bin" command -v cuobjdump)" &&
    PATH="$PATH:${CUDA_HOME:-/usr/local/cuda}/bin" command -v nvdisasm >/dev/null; then
    kernels_cuobjdump="$found"
    return
  fi
  if [[ ! -d "$kernels_tools" ]]; then
    mkdir -p build/log
    timeout -k 10 120 python3 -m pip install --quiet --disable-pip-version-check --no-deps --retries 1 \
      --timeout 15 --target "$kernels_tools" "${packages[@]}" >build/log/kernels-tools.log 2>&1 ||
      rm -rf "$kernels_tools"
  fi
  kernels_cuobjdump="$(find "$kernels_tools" -name cuobjdump -type f 2>/dev/null | head -n 1)"
  [[ -z "$kernels_cuobjdump" ]] || export PATH="$PWD/${kernels_cuobjdump%/*}:$PATH"  # it starts nvdisasm
}

# kernels_installed: the library that others install must have code for each architecture of the table,
# and PTX for GPUs that came later: on any other GPU its first save would fail.
kernels_installed() {
  local library=build/release/lib/libreprise_cuda.so architecture code ptx broken=0
  if [[ -z "$kernels_cuobjdump" ]]; then
    say "    not looked at: the architectures in $library (no cuobjdump)"
    return 0
  fi
  build release reprise_libraries || return 1
  code="$("$kernels_cuobjdump" --list-elf "$library")" || return 1
  ptx="$("$kernels_cuobjdump" --list-ptx "$library")" || return 1
  for architecture in $(grep -o 'sm_[0-9]*$' <(cut -f 3 tests/kernels/kernels.tsv) | sort -u); do
    grep -q "$architecture" <<<"$code" || { say "$library has no code for $architecture"; broken=1; }
  done
  [[ -n "$ptx" ]] || { say "$library has no PTX for later GPUs"; broken=1; }
  ((broken == 0))
}

# verb_kernels [--write]: compiles the kernels for all architectures of the preset gpu, and holds
# registers, spills, stack and accesses of 16 bytes against tests/kernels/kernels.tsv. Then looks for
# these architectures in the library that others install.
verb_kernels() {
  local arguments=()
  command -v python3 >/dev/null || die "./dev kernels needs python3: apt-get install python3"
  configure gpu || return 1
  kernels_find_cuobjdump
  [[ -z "$kernels_cuobjdump" ]] || arguments=(--cuobjdump "$kernels_cuobjdump")
  step "looking at what the compiler makes of the kernels"
  python3 tests/kernels/kernels.py build/gpu tests/kernels/kernels.tsv --jobs "$jobs" "${arguments[@]}" "$@" && kernels_installed
}
