# Checks format, headers and sources; sourced by ./dev.

tool() { # tool NAME: prefers version 14
  command -v "$1-14" || command -v "$1" || die "$1 is missing: ./dev setup --all"
}

source_files() {
  tree_git ls-files -co --exclude-standard -- '*.cpp' '*.hpp' '*.cu' '*.cuh' |
    while read -r file; do [[ ! -f "$file" ]] || printf '%s\n' "$file"; done
}

check_format() {
  local program
  program="$(tool clang-format)" || return 1
  if ! "$program" --version | grep -q 'version 14\.'; then
    say "    not checked: the tree's format is that of version 14, here is another"
    return 0
  fi
  source_files | xargs -r "$program" --dry-run -Werror
}

verb_format() {
  local program
  program="$(tool clang-format)" || return 1
  source_files | xargs -r "$program" -i
}

# Sets the compiler's arguments for every header, and in header_left_out the headers that need
# something that is missing here.
header_left_out='^$'
header_arguments=()
find_vendors() {
  local cuda="${CUDA_HOME:-/usr/local/cuda}/include"
  header_arguments=(-std=c++20 -I. -Iinclude -DREPRISE_TEST_DATA='""' -DREPRISE_SOURCE_DIR='""'
    -DREPRISE_EXE='""' -Wno-pragma-once-outside-header -Wno-pragma-system-header-outside-header)
  if command -v mpicxx >/dev/null; then
    header_arguments+=($(mpicxx --showme:compile))
  else
    header_left_out='^core/adapters/mpi/'
  fi
  if [[ -f "$cuda/cuda_runtime_api.h" ]]; then
    header_arguments+=(-isystem "$cuda")
  else
    header_left_out+='|^core/adapters/(cuda|nccl)/'
  fi
  [[ -f "$cuda/nccl.h" || -f /usr/include/nccl.h ]] || header_left_out+='|^core/adapters/nccl/'
}

# time_is_over DEADLINE FILE LIST: true after the deadline, of which 0 means none; then the list has the file.
time_is_over() {
  (($1 > 0 && $(date +%s) >= $1)) || return 1
  say "$2" >>"$3"
}

# say_what_is_left LIST: says how many files the deadline left unchecked.
say_what_is_left() {
  [[ ! -f "$1" ]] || say "    not checked, the time was over: $(wc -l <"$1") files"
}

# in_turn: puts the files of standard input in order: first those that the last commit or the working tree
# changed, then production in an order that the commit draws, so that what a limit leaves out is not always
# the same, then the tests likewise.
in_turn() {
  local files commit
  files="$(cat)"
  commit=$((16#$(tree_git rev-parse --short=7 HEAD 2>/dev/null || say 1)))
  {
    tree_git diff --name-only HEAD
    tree_git ls-files -o --exclude-standard
    tree_git diff --name-only HEAD~1 HEAD
    grep -v '^tests/' <<<"$files" | drawn_by "$commit"
    grep '^tests/' <<<"$files" | drawn_by "$commit"
  } 2>/dev/null | awk '!seen[$0]++' | grep -Fx -f <(printf '%s\n' "$files")
}

# drawn_by NUMBER: puts lines into an order that depends on the number alone.
drawn_by() { sort | awk -v seed="$1" 'BEGIN { srand(seed) } { print rand() "\t" $0 }' | sort | cut -f 2; }

# header_one DEADLINE COMPILER HEADER ARGUMENT...: compiles to an object, because compiler caches keep only
# those.
header_one() {
  local deadline="$1" clang="$2" header="$3" cache=() object
  shift 3
  ! time_is_over "$deadline" "$header" build/headers/left.txt || return 0
  object="build/headers/${header//\//_}.o"
  ! command -v ccache >/dev/null || cache=(ccache)
  "${cache[@]}" "$clang" "$@" -O0 -x c++ -c "$header" -o "$object"
}

check_headers() { # check_headers DEADLINE: checks that every header compiles alone
  local clang rc
  clang="$(tool clang++)" || return 1
  step "compiling each header alone"
  find_vendors
  [[ "$header_left_out" == '^$' ]] || say "    left out, for want of libraries: ${header_left_out#^$|}"
  mkdir -p build/headers
  rm -f build/headers/left.txt
  source_files | grep '\.hpp$' | grep -vE "$header_left_out" | in_turn |
    xargs -r -P "$jobs" -I{} "$self" header_one "$1" "$clang" {} "${header_arguments[@]}"
  rc=$?
  say_what_is_left build/headers/left.txt
  return "$rc"
}

# Prints "hash file" for each source; the hash covers the file, the tree's files that it includes,
# and the settings.
tidy_keys() {
  local file parts
  source_files | xargs awk '
    FNR == 1 { files[++count] = FILENAME }
    /^#include "/ {
      split($0, part, "\"")
      header = part[2] ~ /^reprise\// ? "include/" part[2] : part[2]
      includes[FILENAME, ++number[FILENAME]] = header
    }
    function reach(file,  i) {
      if (file in seen) return
      seen[file] = 1
      list = list " " file
      for (i = 1; i <= number[file]; ++i) reach(includes[file, i])
    }
    END { for (f = 1; f <= count; ++f) if (files[f] ~ /\.cpp$/) {
      split("", seen); list = ""; reach(files[f]); print substr(list, 2)
    } }' | while read -r file parts; do
    # shellcheck disable=SC2086
    say "$(cat .clang-tidy "$file" $parts 2>/dev/null | sha256sum | cut -d ' ' -f 1) $file"
  done
}

# Lists the sources that the tidy preset would compile, in turn.
tidy_files() {
  sed -n "s|^ *\"file\": \"$PWD/\(.*\)\".*|\1|p" build/tidy/compile_commands.json | grep -v '^build/' | in_turn
}

# tidy_one DEADLINE KEY FILE: called once per file, in parallel.
tidy_one() {
  local deadline="$1" key="$2" file="$3" out
  ! time_is_over "$deadline" "$file" build/tidy/left.txt || return 0
  if out="$("$(tool clang-tidy)" -p build/tidy --quiet "$file" 2>/dev/null)"; then
    : >"build/tidy/passed/$key"
  else
    printf '%s\n%s\n' "$file:" "$out"
    return 1
  fi
}

check_tidy() { # check_tidy DEADLINE
  local deadline="$1" key file todo=() known=0 rc
  local -A keys=()
  configure tidy || return 1
  mkdir -p build/tidy/passed
  rm -f build/tidy/left.txt
  while read -r key file; do keys["$file"]="$key"; done < <(tidy_keys)
  for file in $(tidy_files); do
    key="${keys[$file]}"
    if [[ -f "build/tidy/passed/$key" ]]; then ((known += 1)); else todo+=("$key" "$file"); fi
  done
  step "clang-tidy on $((${#todo[@]} / 2)) files ($known are unchanged since they passed)"
  ((${#todo[@]} > 0)) || return 0
  printf '%s\n' "${todo[@]}" | xargs -n 2 -P "$jobs" "$self" tidy_one "$deadline"
  rc=$?
  say_what_is_left build/tidy/left.txt
  ((rc == 0))
}

# lint_within SECONDS: the headers and clang-tidy have that long each; the other checks have no limit.
lint_within() {
  local rc=0
  step "checking the format"
  check_format || rc=1
  build release test_layers && build/release/test_layers --gtest_brief=1 || rc=1
  check_headers "$(($(date +%s) + $1))" || rc=1
  check_tidy "$(($(date +%s) + $1))" || rc=1
  return "$rc"
}

verb_lint() {
  verb_setup --all || return 1
  lint_within 86400  # a day, that is no limit
}
