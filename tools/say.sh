# Prints messages; sourced by ./dev.

say() { printf '%s\n' "$*"; }
step() { printf '==> %s\n' "$*"; }
die() {
  printf 'dev: %s\n' "$*" >&2
  exit 1
}

# step_timed WHAT LOG COMMAND...: runs quietly into LOG; shows the log's end if the command fails.
step_timed() {
  local what="$1" log="$2" began rc
  shift 2
  mkdir -p "$(dirname "$log")"
  step "$what"
  began=$SECONDS
  "$@" >"$log" 2>&1
  rc=$?
  if ((rc != 0)); then
    tail -n 60 "$log"
    say "    failed after $((SECONDS - began)) s; the whole log: $log"
  else
    say "    done in $((SECONDS - began)) s"
  fi
  return "$rc"
}

# The clone may belong to another user, as in a container.
tree_git() { git -c safe.directory="$PWD" "$@"; }
