# Installs what the build needs; sourced by ./dev.

readonly packages_needed=(build-essential cmake ninja-build ccache git
  libgtest-dev libgmock-dev librapidcheck-dev libbenchmark-dev libspdlog-dev libfmt-dev
  libcli11-dev libyaml-cpp-dev nlohmann-json3-dev libboost-context-dev libisal-dev libxxhash-dev
  libre2-dev libssl-dev libpugixml-dev libzip-dev libopenmpi-dev openmpi-bin)
readonly packages_checks=(clang-14 clang-tidy-14 clang-format-14 libclang-rt-14-dev llvm-14)
readonly packages_checks_any=(clang clang-tidy clang-format llvm)  # where there is no version 14
# Tests of pages, of the schema and of the completion in other shells; without them those tests are skipped.
readonly packages_tests=(python3-jsonschema python3-selenium chromium chromium-driver zsh fish)

# Prints which of the given packages are not installed.
missing_packages() {
  local package
  for package in "$@"; do
    if [[ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" != installed ]]; then
      printf '%s\n' "$package"
    fi
  done
}

as_root() {
  if ((EUID == 0)); then
    env DEBIAN_FRONTEND=noninteractive "$@"
  else
    sudo env DEBIAN_FRONTEND=noninteractive "$@"
  fi
}

apt_install() {
  as_root apt-get update -q && as_root apt-get install -y -q --no-install-recommends "$@"
}

# Says what apt-get will install, and asks for permission if there is a terminal.
may_install() {
  local answer
  say "./dev needs these packages and installs them with apt-get:"
  printf '%s\n' "$*" | fold -s -w 96 | sed 's/^/    /'
  [[ -t 0 && -t 1 ]] || return 0
  read -r -p "Install them now? [Y/n] " answer || return 1
  [[ -z "$answer" || "$answer" == [Yy]* ]]
}

install() {
  local log=build/log/setup.log
  may_install "$@" || die "not installed; to do it by hand: apt-get install $*"
  if ((EUID != 0)) && ! command -v sudo >/dev/null; then
    die "needs root or sudo; as root: apt-get install $*"
  fi
  ((EUID == 0)) || sudo -v || die "sudo was refused"
  step_timed "installing $# packages" "$log" apt_install "$@" || return 1
  rm -f build/*/CMakeCache.txt  # search again for what is installed now
}

# Installs what these tests need. Where not all of it is to be had, takes what there is.
install_for_tests() {
  local package missing
  mapfile -t missing < <(missing_packages "${packages_tests[@]}")
  if ((${#missing[@]} == 0)) || install "${missing[@]}"; then return 0; fi
  for package in "${missing[@]}"; do
    install "$package" || say "    $package is not to be had here: tests that need it are skipped"
  done
}

# python_of VERSION...: prints an interpreter of this machine of the first version of which there is one.
python_of() {
  local version python
  for version in "$@"; do
    for python in "python$version" "$HOME/.pyenv/versions/$version".*/bin/python3; do
      "$python" -c "import sys, venv; sys.exit('%d.%d' % sys.version_info[:2] != '$version')" 2>/dev/null || continue
      say "$python"
      return 0
    done
  done
  return 1
}

# verb_setup [--all]: installs what the build needs; --all adds what the sanitizer builds, lint and
# the tests of pages need.
verb_setup() {
  local missing
  if ! command -v dpkg-query >/dev/null; then
    say "This is no Debian or Ubuntu; the build expects the equivalents of:"
    say "  ${packages_needed[*]}"
    return 0
  fi
  mapfile -t missing < <(missing_packages "${packages_needed[@]}")
  if ((${#missing[@]} > 0)); then
    install "${missing[@]}" || return 1
  fi
  [[ "${1:-}" == --all ]] || return 0
  mapfile -t missing < <(missing_packages "${packages_checks[@]}")
  if ((${#missing[@]} > 0)) && ! install "${missing[@]}"; then
    mapfile -t missing < <(missing_packages "${packages_checks_any[@]}")
    if ((${#missing[@]} > 0)); then
      say "    version 14 is not to be had here; taking the default one"
      install "${missing[@]}" || return 1
    fi
  fi
  install_for_tests
}
